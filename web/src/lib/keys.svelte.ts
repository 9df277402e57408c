/** Keys of the shown page. Pages add theirs with `useKeys`; `?` lists them. */
import { untrack } from "svelte";

export interface KeyBinding {
  keys: string; // "m", "Shift+R", "Mod+z" (Ctrl, or Cmd on a Mac), "/", "?"
  does: string;
  run: (event: KeyboardEvent) => void;
  when?: () => boolean;
}

const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const layers: (() => KeyBinding[])[] = $state([]);

export const bindings = (): KeyBinding[] => layers.flatMap((layer) => layer());

/** Adds bindings while the calling component lives; the newest component wins. */
export function useKeys(layer: () => KeyBinding[]): void {
  $effect(() => {
    // push and splice also read the list: without untrack the effect would start itself again.
    untrack(() => layers.push(layer));
    return () =>
      untrack(() => {
        const at = layers.indexOf(layer);
        if (at >= 0) layers.splice(at, 1);
      });
  });
}

export function shown(keys: string): string {
  return keys.replace("Mod", MAC ? "⌘" : "Ctrl").replace("Shift", "⇧").replaceAll("+", " ");
}

export function matches(event: KeyboardEvent, keys: string): boolean {
  const parts = keys === "+" ? ["+"] : keys.split("+");
  const key = parts[parts.length - 1] ?? "";
  const mod = MAC ? event.metaKey : event.ctrlKey;
  if (parts.includes("Mod") !== mod || (MAC ? event.ctrlKey : event.metaKey) || event.altKey) return false;
  const letter = /^[a-z]$/i.test(key) || key.length > 1;
  if (letter && parts.includes("Shift") !== event.shiftKey) return false;
  return event.key.toLowerCase() === key.toLowerCase();
}

export function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented) return;
  const target = event.target instanceof HTMLElement ? event.target : null;
  const typing = target?.closest("input, textarea, select, [contenteditable]");
  if (typing || document.querySelector("dialog[open]")) return;
  const found = bindings().reverse().find((binding) => matches(event, binding.keys) && (binding.when?.() ?? true));
  if (!found) return;
  event.preventDefault();
  found.run(event);
}
