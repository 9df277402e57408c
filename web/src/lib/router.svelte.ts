/** Addresses of the views, in the fragment: every view can be sent as a link.
 *
 *   #/clusterings/cl_1/groups/3?sort=borderline&image=img_2
 */
type Query = Record<string, string>;

export interface Route {
  page: string;
  params: Record<string, string>;
  query: Query;
}

const ROUTES: [page: string, pattern: string][] = [
  ["home", "/"],
  ["dataset", "/datasets/:id"],
  ["job", "/jobs/:id"],
  ["groups", "/clusterings/:id"],
  ["group", "/clusterings/:id/groups/:group"],
  ["excluded", "/clusterings/:id/excluded"],
  ["compare", "/clusterings/:id/compare"],
  ["search", "/clusterings/:id/search"],
  ["review", "/clusterings/:id/review"],
  ["changes", "/clusterings/:id/changes"],
  ["map", "/clusterings/:id/map"],
  ["history", "/clusterings/:id/history"],
  ["export", "/clusterings/:id/export"],
  ["model", "/models/:name"],
  ["settings", "/settings"],
];

export function parse(hash: string): Route {
  const [path = "/", search = ""] = hash.replace(/^#/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean);
  const query = Object.fromEntries(new URLSearchParams(search));
  for (const [page, pattern] of ROUTES) {
    const params = match(pattern.split("/").filter(Boolean), parts);
    if (params) return { page, params, query };
  }
  return { page: "unknown", params: { path }, query };
}

function match(pattern: string[], parts: string[]): Record<string, string> | null {
  if (pattern.length !== parts.length) return null;
  const params: Record<string, string> = {};
  for (const [index, piece] of pattern.entries()) {
    const part = parts[index] ?? "";
    if (piece.startsWith(":")) params[piece.slice(1)] = decode(part);
    else if (piece !== part) return null;
  }
  return params;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The link of a view: `href("/clusterings", id, "groups", 3)`. */
export function href(...parts: (string | number)[]): string {
  return `#${parts.map((part, index) => (index === 0 ? part : encodeURIComponent(part))).join("/")}`;
}

export function withQuery(hash: string, changes: Record<string, string | number | null>): string {
  const [path = "#/", search = ""] = hash.split("?", 2);
  const query = new URLSearchParams(search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, String(value));
  }
  return query.size ? `${path}?${query}` : path;
}

class Router {
  current: Route = $state(parse(location.hash));

  constructor() {
    window.addEventListener("hashchange", () => (this.current = parse(location.hash)));
  }

  go(hash: string): void {
    location.hash = hash;
  }

  /** Changes the query of the current view. `replace` adds no step to the browser's history. */
  set(changes: Record<string, string | number | null>, replace = true): void {
    const hash = withQuery(location.hash || "#/", changes);
    if (hash === location.hash) return;
    if (!replace) this.go(hash);
    else {
      history.replaceState(null, "", hash);
      this.current = parse(hash);
    }
  }
}

export const router = new Router();
