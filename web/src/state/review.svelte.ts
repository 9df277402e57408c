/** The questions of a review and the answers to them. An answer counts at once: it is shown as given,
 * kept in the browser's storage until the service has it, and sent together with those before it. */
import { ApiError, describe } from "../api/errors";
import { type Proof, readQueue, readReview, sendAnswers, withdrawAnswer } from "../api/review";
import type { AnswerCreate, ReviewQuestion, ReviewReport } from "../api/types";
import { randomId } from "../lib/ids";
import { toasts } from "./toasts.svelte";

const AHEAD = 40; // questions that are read together
const LOW = 15; // more are read when fewer are left
const AT_ONCE = 100; // answers in one request
const RETRY_MS = 1000;
const REPORT_MS = 1500;

export type Kind = AnswerCreate["answer"];

export class ReviewState {
  questions: ReviewQuestion[] = $state.raw([]);
  report: ReviewReport | null = $state.raw(null);
  waiting: AnswerCreate[] = $state.raw([]);
  given: ReviewQuestion[] = $state.raw([]); // in this page, newest last
  loaded = $state(false);
  error = $state("");

  private readonly answered = new Set<string>(); // also those that are being sent
  private readonly skipped = new Set<string>();
  private reading = false;
  private sending = false;
  private again = false; // the purity was changed while questions were read
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    readonly id: string,
    readonly minPurity: () => number,
    private readonly changed: () => void = () => undefined, // photos were moved
    readonly proof: () => Proof = () => "groups",
  ) {
    this.waiting = loadAnswers(id);
    for (const answer of this.waiting) this.answered.add(answer.image_id);
  }

  readonly current = $derived(this.questions[0] ?? null);

  /** Reads questions and report anew, such as for another purity. */
  async load(): Promise<void> {
    this.questions = [];
    this.again = this.reading;
    await Promise.all([this.fill(), this.loadReport(), this.send()]);
  }

  answer(kind: Kind, belongsTo?: number): void {
    const question = this.current;
    if (!question) return;
    const { image_id, cluster_id, sample } = question;
    const answer = { image_id, cluster_id, sample, answer: kind, ...(belongsTo === undefined ? {} : { belongs_to: belongsTo }) };
    this.answered.add(image_id);
    this.given = [...this.given, question];
    this.keep([...this.waiting, answer]);
    this.next();
    void this.send();
  }

  /** Puts the question at the end; it comes back when the others are done. */
  skip(): void {
    if (!this.current) return;
    this.skipped.add(this.current.image_id);
    this.next();
  }

  /** Takes the last answer back and asks again. */
  async undo(): Promise<void> {
    const question = this.given[this.given.length - 1];
    if (!question) return;
    this.given = this.given.slice(0, -1);
    this.answered.delete(question.image_id);
    this.questions = [question, ...this.questions.filter((one) => one.image_id !== question.image_id)];
    const unsent = this.waiting.filter((answer) => answer.image_id !== question.image_id);
    if (unsent.length < this.waiting.length && !this.sending) return this.keep(unsent);
    try {
      await this.idle();
      await withdrawAnswer(this.id, question.image_id);
      this.refresh();
    } catch (error) {
      if (!(error instanceof ApiError && error.status === 404)) toasts.error(`The answer was not withdrawn. ${describe(error)}`);
    }
  }

  close(): void {
    clearTimeout(this.timer);
  }

  private next(): void {
    this.questions = this.questions.slice(1);
    if (this.questions.length < LOW) void this.fill();
  }

  private async fill(): Promise<void> {
    if (this.reading) return;
    this.reading = true;
    try {
      const wanted = Math.min(500, AHEAD + this.skipped.size + this.waiting.length + this.questions.length);
      const found = (await readQueue(this.id, this.minPurity(), this.proof(), labeler(), wanted)).data;
      const fresh = found.filter((one) => !this.answered.has(one.image_id));
      const asked = fresh.filter((one) => !this.skipped.has(one.image_id));
      // Only skipped ones are left: they are asked again.
      if (!asked.length && !this.questions.length) this.skipped.clear();
      const known = new Set(this.questions.map((one) => one.image_id));
      const more = (asked.length || this.questions.length ? asked : fresh).filter((one) => !known.has(one.image_id));
      if (!this.again) this.questions = [...this.questions, ...more];
      this.error = "";
      this.loaded = true;
    } catch (error) {
      this.error = describe(error);
    } finally {
      this.reading = false;
    }
    if (this.again) {
      this.again = false;
      await this.fill();
    }
  }

  private async send(): Promise<void> {
    if (this.sending) return;
    this.sending = true;
    try {
      while (this.waiting.length && (await this.sendSome()));
    } finally {
      this.sending = false;
    }
    if (!this.questions.length) void this.fill();
  }

  /** Sends the first answers; false if sending must stop. */
  private async sendSome(): Promise<boolean> {
    const some = this.waiting.slice(0, AT_ONCE);
    const done = (): void => this.keep(this.waiting.filter((answer) => !some.includes(answer)));
    try {
      const stored = await sendAnswers(this.id, some);
      done();
      if (stored.refused.length) toasts.add("A photo was moved by another person meanwhile: the answer about it does not count.");
      if (some.some((answer) => answer.answer === "which" || answer.answer === "none")) this.changed();
      this.refresh();
      return true;
    } catch (error) {
      const refusal = error instanceof ApiError ? error : null;
      if (refusal?.status === 401) return false; // sent after the reload with a key
      if (refusal?.temporary) {
        await new Promise((resolve) => setTimeout(resolve, (refusal.retryAfter ?? 0) * 1000 || RETRY_MS));
        return true;
      }
      done();
      toasts.error(`Not saved: ${some.length === 1 ? "an answer" : `${some.length} answers`}. ${describe(error)}`);
      return true;
    }
  }

  /** Waits until no answer is on its way. */
  private async idle(): Promise<void> {
    while (this.sending) await new Promise((resolve) => setTimeout(resolve, 20));
  }

  private keep(answers: AnswerCreate[]): void {
    this.waiting = answers;
    saveAnswers(this.id, answers);
  }

  /** The report follows the answers, but not each of them. */
  private refresh(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      void this.loadReport();
    }, REPORT_MS);
  }

  private async loadReport(): Promise<void> {
    const wanted = this.minPurity();
    const proof = this.proof();
    try {
      const found = await readReview(this.id, wanted, proof);
      if (wanted === this.minPurity() && proof === this.proof()) this.report = found;
    } catch (error) {
      this.error = describe(error);
    }
  }
}

const stored = (clusteringId: string): string => `temi-answers-${clusteringId}`;

function loadAnswers(clusteringId: string): AnswerCreate[] {
  try {
    const answers: unknown = JSON.parse(localStorage.getItem(stored(clusteringId)) ?? "[]");
    return Array.isArray(answers) ? (answers as AnswerCreate[]) : [];
  } catch {
    return [];
  }
}

function saveAnswers(clusteringId: string, answers: AnswerCreate[]): void {
  try {
    if (answers.length) localStorage.setItem(stored(clusteringId), JSON.stringify(answers));
    else localStorage.removeItem(stored(clusteringId));
  } catch {
    // A full storage must not stop the work: the answers are still sent from memory.
  }
}

/** A name for this browser: labelers with different names begin with different groups. */
function labeler(): string {
  const name = localStorage.getItem("temi-labeler") ?? randomId();
  try {
    localStorage.setItem("temi-labeler", name);
  } catch {
    // Two labelers may meet; the later answer counts.
  }
  return name;
}
