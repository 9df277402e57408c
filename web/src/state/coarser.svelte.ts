/** A coarser view of a clustering, as the service joins its groups. */
import { groupHierarchy } from "../api/groups";
import { describe } from "../api/errors";
import type { ClusterGroup } from "../api/types";
import { toasts } from "./toasts.svelte";

export class CoarserView {
  /** Those of the latest answer; null before it, and if it failed. */
  groups: ClusterGroup[] | null = $state.raw(null);
  /** Whether there was a first answer, or none was needed: before, nothing is shown that would be
   * arranged anew. */
  settled = $state(false);
  private level: number | null = null;
  private asked = 0;
  private answered = 0;
  private running = false;

  constructor(private clusteringId: string) {}

  /** Asks for so many groups, or for none. A slider asks for many in a row: there is one request at
   * a time, the next one is for the latest, and an answer to an older question is ignored. */
  async load(level: number | null): Promise<void> {
    this.level = level;
    this.asked += 1;
    if (level === null) this.show(null);
    if (this.running) return;
    this.running = true;
    while (this.answered < this.asked) await this.ask();
    this.running = false;
  }

  private async ask(): Promise<void> {
    const { asked, level } = this;
    this.answered = asked;
    if (level === null) return;
    try {
      const { groups } = await groupHierarchy(this.clusteringId, level);
      if (asked === this.asked) this.show(groups);
    } catch (error) {
      if (asked !== this.asked) return;
      this.show(null);
      toasts.error(`The groups cannot be shown as ${level} groups. ${describe(error)}`);
    }
  }

  private show(groups: ClusterGroup[] | null): void {
    this.groups = groups;
    this.settled = true;
  }
}
