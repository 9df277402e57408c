/** Figures of a model version or clustering that people ask for first. */
import { percent } from "./format";

interface Figure {
  name: string;
  about: string;
  shown: string;
}

const FIGURES: { path: string; name: string; about: string; share?: boolean }[] = [
  { path: "temi.accuracy", name: "Accuracy", about: "share of photos whose group matches their true label", share: true },
  { path: "temi.nmi", name: "NMI", about: "normalized mutual information with the true labels", share: true },
  { path: "temi.ari", name: "ARI", about: "adjusted Rand index with the true labels", share: true },
  { path: "mean_probability", name: "Confidence", about: "mean probability of a photo's group, as on the page of the groups", share: true },
  { path: "size_kl", name: "Unevenness", about: "how far the sizes of the groups are from equal; 0: all are equal" },
  { path: "empty_clusters", name: "Empty groups", about: "groups without a photo" },
];
const known = (path: string) => FIGURES.find((figure) => path === figure.path || path === `metrics.${figure.path}`);

function at(metrics: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => (typeof value === "object" && value !== null ? (value as Record<string, unknown>)[key] : undefined), metrics);
}

export function figures(metrics: unknown): Figure[] {
  return FIGURES.flatMap(({ path, name, about }) => {
    const value = at(metrics, path);
    return typeof value === "number" ? [{ name, about, shown: shownAt(path, value) }] : [];
  });
}

/** The metrics of a version, which its manifest holds. */
export const metricsOf = (manifest: Record<string, unknown>): unknown => manifest.metrics ?? {};

/** "temi.accuracy" as people read it. */
export function figureName(path: string): string {
  return known(path)?.name ?? path.replace(/^(metrics|config)\./, "").replaceAll("_", " ");
}

export function shownFigure(value: unknown): string {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : value.toFixed(3);
  if (value === null || value === undefined) return "–";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The value of a figure: shares in percent, as on all other pages. */
export const shownAt = (path: string, value: unknown): string => (known(path)?.share && typeof value === "number" ? percent(value, 1) : shownFigure(value));

/** How far a figure rose or fell. */
export function shownChange(path: string, from: number, to: number): string {
  const change = to - from;
  const size = known(path)?.share ? `${(100 * change).toFixed(1)} points` : shownFigure(change);
  return `${change > 0 ? "+" : ""}${size}`;
}
