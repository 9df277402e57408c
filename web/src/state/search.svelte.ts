/** What a search has found, and how photos of it come into a group. */
import { describe } from "../api/errors";
import { searchPhotos, type Wanted } from "../api/search";
import type { FoundImage } from "../api/types";
import type { GroupTarget } from "../components/GroupPicker.svelte";
import { count } from "../lib/format";
import type { ClusteringState } from "./clustering.svelte";
import { noteTarget } from "./frequent";
import { scopeText, Selection } from "./selection.svelte";

/** What was found, as the grid wants it: all of it is in memory. */
class FoundList {
  constructor(readonly list: () => FoundImage[]) {}

  get count(): number {
    return this.list().length;
  }

  at(index: number): FoundImage | undefined {
    return this.list()[index];
  }

  async range(first: number, last: number): Promise<FoundImage[]> {
    return this.list().slice(first, last + 1);
  }
}

export class SearchState {
  readonly selection = new Selection();
  found: FoundImage[] | null = $state.raw(null);
  searching = $state(false);
  error = $state("");
  private running: AbortController | undefined;

  constructor(readonly clustering: ClusteringState) {}

  readonly photos = new FoundList(() => this.found ?? []);

  readonly concerned = $derived.by(() => {
    if (!this.selection.empty) return this.selection.size(this.photos.count);
    return this.photos.at(this.selection.active) ? 1 : 0;
  });
  readonly scope = $derived.by(() => scopeText(this.selection, this.concerned));

  /** Searches anew; `keep` for the same search after a change of the groups. */
  async search(datasetId: string, wanted: Wanted, keep = false): Promise<void> {
    this.running?.abort();
    const running = (this.running = new AbortController());
    if (!keep) {
      this.found = null;
      this.selection.clear();
      this.selection.active = this.selection.anchor = 0;
    }
    this.searching = !keep;
    try {
      this.found = await searchPhotos(datasetId, this.clustering.id, wanted, running.signal);
      this.error = "";
    } catch (problem) {
      if (!running.signal.aborted) this.error = describe(problem);
    } finally {
      if (running === this.running) this.searching = false;
    }
  }

  /** Moves the selected photos, or the one with the focus, to a group; they stay in the list. */
  move(target: GroupTarget): void {
    const ids = this.chosen();
    if (!ids.length) return;
    const { clustering } = this;
    const moved = `Moved ${count(ids.length, "photo")}`;
    if ("cluster_id" in target) {
      noteTarget(clustering.id, target.cluster_id);
      clustering.apply({ kind: "move", image_ids: ids, cluster_id: target.cluster_id }, `${moved} to “${clustering.label(target.cluster_id)}”`);
    } else clustering.apply({ kind: "move", image_ids: ids, new_cluster: target.new_cluster }, `${moved} to the new group “${target.new_cluster}”`);
    this.selection.clear();
  }

  exclude(): void {
    const ids = this.chosen();
    if (!ids.length) return;
    this.clustering.apply({ kind: "exclude", image_ids: ids }, `Excluded ${count(ids.length, "photo")}`);
    this.selection.clear();
  }

  private chosen(): string[] {
    const { selection, photos } = this;
    const active = photos.at(selection.active);
    if (selection.empty) return active ? [active.image_id] : [];
    if (!selection.everything) return selection.listed;
    return photos.list().map((photo) => photo.image_id).filter((id) => selection.has(id));
  }
}
