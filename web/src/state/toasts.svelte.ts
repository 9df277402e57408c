/** Short messages at the lower edge; an action such as Undo stays longer. */
export interface Toast {
  id: number;
  text: string;
  kind: "info" | "error";
  action?: { label: string; run: () => void };
}

const SECONDS = 6;
const SECONDS_WITH_ACTION = 12;

class Toasts {
  shown: Toast[] = $state([]);
  private next = 1;

  add(text: string, options: Partial<Pick<Toast, "kind" | "action">> = {}): number {
    const id = this.next++;
    this.shown = [...this.shown.slice(-3), { id, text, kind: options.kind ?? "info", action: options.action }];
    const seconds = options.action || options.kind === "error" ? SECONDS_WITH_ACTION : SECONDS;
    setTimeout(() => this.remove(id), seconds * 1000);
    return id;
  }

  error(text: string): number {
    return this.add(text, { kind: "error" });
  }

  remove(id: number): void {
    this.shown = this.shown.filter((toast) => toast.id !== id);
  }
}

export const toasts = new Toasts();
