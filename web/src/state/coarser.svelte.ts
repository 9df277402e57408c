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
  private asked = 0;

  constructor(private clusteringId: string) {}

  /** Asks for so many groups, or for none. Answers to older questions are ignored. */
  async load(level: number | null): Promise<void> {
    const asked = ++this.asked;
    if (level === null) {
      this.groups = null;
      this.settled = true;
      return;
    }
    try {
      const found = await groupHierarchy(this.clusteringId, level);
      if (asked === this.asked) this.groups = found.groups;
    } catch (error) {
      if (asked !== this.asked) return;
      this.groups = null;
      toasts.error(`The groups cannot be shown as ${level} groups. ${describe(error)}`);
    } finally {
      if (asked === this.asked) this.settled = true;
    }
  }
}
