/** The photos that were excluded from all groups, and how they come back into one. */
import { all, api, ok } from "../api/client";
import type { Assignment } from "../api/types";
import type { GroupTarget } from "../components/GroupPicker.svelte";
import { count, integer } from "../lib/format";
import type { ClusteringState } from "./clustering.svelte";
import { EXCLUDED } from "./edits";
import { noteTarget } from "./frequent";
import { PhotoList } from "./photos.svelte";
import { scopeText, Selection } from "./selection.svelte";
import { toasts } from "./toasts.svelte";

const EVERY = 200;
const ROWS = 1000; // in one request
const MAX_LISTED = 10_000; // ids in one operation

export class ExcludedState {
  readonly selection = new Selection();
  /** All of them are read: there are few, and "all" must be sent as ids. */
  private rows: Assignment[] = [];
  private left = new Set<string>(); // moved back, not confirmed yet
  readonly photos: PhotoList<Assignment>;

  constructor(readonly clustering: ClusteringState) {
    this.photos = new PhotoList(
      () => this.read(),
      async (cursor, limit) => this.rows.slice(Number(cursor), Number(cursor) + limit),
    );
  }

  /** How many photos an action concerns: the selected ones, or the one with the focus. */
  readonly concerned = $derived.by(() => {
    if (!this.selection.empty) return this.selection.size(this.photos.count);
    return this.photos.at(this.selection.active) ? 1 : 0;
  });
  readonly scope = $derived.by(() => scopeText(this.selection, this.concerned));

  /** Moves the photos back into a group; they leave this list at once. */
  move(target: GroupTarget): void {
    const ids = this.chosen();
    if (!ids.length) return;
    if (ids.length > MAX_LISTED) return void toasts.error(`Move at most ${integer(MAX_LISTED)} photos at once.`);
    this.leave(new Set(ids));
    const { clustering } = this;
    const source = { cluster_id: EXCLUDED, count: ids.length };
    const moved = `Moved ${count(ids.length, "photo")} back`;
    if ("cluster_id" in target) {
      noteTarget(clustering.id, target.cluster_id);
      clustering.apply({ kind: "move", image_ids: ids, cluster_id: target.cluster_id }, `${moved} to “${clustering.label(target.cluster_id)}”`, source);
    } else clustering.apply({ kind: "move", image_ids: ids, new_cluster: target.new_cluster }, `${moved} to the new group “${target.new_cluster}”`, source);
  }

  private chosen(): string[] {
    const { selection, photos } = this;
    const active = photos.at(selection.active);
    if (selection.empty) return active ? [active.image_id] : [];
    if (!selection.everything) return selection.listed;
    return this.rows.map((row) => row.image_id).filter((id) => selection.has(id) && !this.left.has(id));
  }

  private leave(ids: Set<string>): void {
    const { selection, photos } = this;
    for (const id of ids) this.left.add(id);
    const whole = this.left.size >= this.rows.length;
    const first = whole ? 0 : photos.remove((photo) => ids.has(photo.image_id));
    if (whole) photos.removeAll();
    selection.clear();
    if (first >= 0) selection.active = selection.anchor = Math.max(0, Math.min(first, photos.count - 1));
  }

  private async read() {
    const path = { clustering_id: this.clustering.id };
    this.rows = await all((cursor) =>
      ok(api.GET("/v1/clusterings/{clustering_id}/assignments", { params: { path, query: { excluded: true, limit: ROWS, cursor } } })),
    );
    this.left.clear();
    const cursors = Array.from({ length: Math.ceil(this.rows.length / EVERY) }, (_, page) => String(page * EVERY));
    return { count: this.rows.length, every: EVERY, cursors };
  }
}
