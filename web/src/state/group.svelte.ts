/** The photos of one group, what is selected of them, and what is done with the selection. */
import { groupCursors, groupPhotos, type PhotoOrder } from "../api/groups";
import type { RankedImage } from "../api/types";
import type { GroupTarget } from "../components/GroupPicker.svelte";
import { count, integer } from "../lib/format";
import type { ClusteringState } from "./clustering.svelte";
import { noteTarget } from "./frequent";
import { PhotoList } from "./photos.svelte";
import { scopeText, Selection } from "./selection.svelte";
import { toasts } from "./toasts.svelte";

const MAX_LISTED = 10_000; // ids in one operation

export class GroupState {
  readonly selection = new Selection();
  readonly photos: PhotoList<RankedImage>;

  constructor(
    readonly clustering: ClusteringState,
    readonly clusterId: number,
    order: () => PhotoOrder,
  ) {
    const { id } = clustering;
    this.photos = new PhotoList(
      () => groupCursors(id, clusterId, order()),
      (cursor, limit) => groupPhotos(id, clusterId, order(), cursor, limit),
    );
  }

  readonly cluster = $derived.by(() => this.clustering.byId.get(this.clusterId));
  readonly label = $derived.by(() => this.clustering.label(this.clusterId));
  /** How many photos an action concerns: the selected ones, or the one with the focus. */
  readonly concerned = $derived.by(() => {
    if (!this.selection.empty) return this.selection.size(this.photos.count);
    return this.photos.at(this.selection.active) ? 1 : 0;
  });
  readonly scope = $derived.by(() => scopeText(this.selection, this.concerned));

  move(target: GroupTarget): void {
    const done = this.take();
    if (!done) return;
    if ("cluster_id" in target) {
      noteTarget(this.clustering.id, target.cluster_id);
      const said = `Moved ${count(done.count, "photo")} to “${this.clustering.label(target.cluster_id)}”`;
      this.clustering.apply({ kind: "move", ...done.images, cluster_id: target.cluster_id }, said, done.source);
    } else {
      const said = `Moved ${count(done.count, "photo")} to the new group “${target.new_cluster}”`;
      this.clustering.apply({ kind: "move", ...done.images, new_cluster: target.new_cluster }, said, done.source);
    }
  }

  exclude(): void {
    const done = this.take();
    if (done) this.clustering.apply({ kind: "exclude", ...done.images }, `Excluded ${count(done.count, "photo")}`, done.source);
  }

  /** The photos of the action; they leave the list at once, and the next one gets the focus. */
  private take() {
    const { selection, photos } = this;
    const number = this.concerned;
    const active = photos.at(selection.active);
    if (!number || (selection.empty && !active)) return null;
    if (selection.listed.length > MAX_LISTED) {
      toasts.error(`Select at most ${integer(MAX_LISTED)} photos one by one, or all photos of the group.`);
      return null;
    }
    const images = selection.empty && active ? { image_ids: [active.image_id] } : selection.images(this.clusterId);
    const whole = selection.everything && !selection.below && !selection.listed.length;
    const single = selection.empty ? active?.image_id : null;
    const first = whole ? 0 : photos.remove((photo) => (single ? photo.image_id === single : selection.has(photo.image_id, photo.probability)));
    if (whole) photos.removeAll();
    selection.clear();
    if (first >= 0) selection.active = selection.anchor = Math.max(0, Math.min(first, photos.count - 1));
    return { images, count: number, source: { cluster_id: this.clusterId, count: number } };
  }
}
