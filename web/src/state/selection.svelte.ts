/** Which photos of a list are selected: some of them, or all (that match) but some. */
import { SvelteSet } from "svelte/reactivity";
import type { SelectedImages } from "../api/types";
import { integer, percent } from "../lib/format";

export class Selection {
  /** With `everything`: the photos that are not selected. */
  private ids = new SvelteSet<string>();
  everything = $state(false);
  /** With `everything`: only photos with a lower probability, and how many these are. */
  below: { probability: number; count: number } | null = $state.raw(null);
  anchor = $state(0); // where a range starts
  active = $state(0); // the photo that has the keyboard's focus

  has(id: string, probability?: number): boolean {
    if (!this.everything) return this.ids.has(id);
    return this.matches(probability) && !this.ids.has(id);
  }

  size(total: number): number {
    return this.everything ? Math.max(0, (this.below?.count ?? total) - this.ids.size) : this.ids.size;
  }

  get empty(): boolean {
    return !this.everything && this.ids.size === 0;
  }

  /** The listed ids: the selected ones, or with `everything` the exceptions. */
  get listed(): string[] {
    return [...this.ids];
  }

  only(id: string): void {
    this.clear();
    this.ids.add(id);
  }

  toggle(id: string, probability?: number): void {
    if (this.everything && !this.matches(probability)) return;
    if (!this.ids.delete(id)) this.ids.add(id);
  }

  add(ids: Iterable<string>): void {
    for (const id of ids) {
      if (this.everything) this.ids.delete(id);
      else this.ids.add(id);
    }
  }

  all(below: { probability: number; count: number } | null = null): void {
    this.ids.clear();
    this.everything = true;
    this.below = below;
  }

  clear(): void {
    this.ids.clear();
    this.everything = false;
    this.below = null;
  }

  /** The photos for an operation, in one request whatever their number. */
  images(clusterId: number): SelectedImages {
    if (!this.everything) return { image_ids: this.listed };
    const selection: NonNullable<SelectedImages["selection"]> = { cluster_id: clusterId, except_image_ids: this.listed };
    if (this.below) selection.max_probability = this.below.probability;
    return { selection };
  }

  private matches(probability: number | undefined): boolean {
    return !this.below || (probability ?? 0) <= this.below.probability;
  }
}

/** The scope of an action: "3 selected", "all 1,204", "all 37 up to 60 %". */
export function scopeText(selection: Selection, concerned: number): string {
  if (selection.empty) return "this photo";
  if (!selection.everything) return `${integer(concerned)} selected`;
  const below = selection.below ? ` up to ${percent(selection.below.probability)}` : "";
  return selection.listed.length ? `${integer(concerned)} selected${below}` : `all ${integer(concerned)}${below}`;
}
