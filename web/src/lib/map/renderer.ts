/** Draws the points with WebGL2.
 *
 * regl-scatterplot would do this, but regl makes its functions with `new Function`, which the page's
 * Content-Security-Policy forbids: the page holds the API key.
 *
 * The first frame of a view draws as many points as the machine draws in time, an even sample of
 * all; the next frames add the others while the view stays. The canvas is larger than what is seen
 * of it: panning moves it, and draws again only when its edge comes near. So panning is fluent
 * without a graphics card, and a still map is complete.
 */
import type { GridIndex, Range } from "./grid-index";
import { pixelsPerUnit, shownArea, type Size, type View } from "./view";

const VERTEX = `#version 300 es
in vec2 place;
in vec4 color;
uniform vec2 scale;
uniform vec2 center;
uniform float size;
out vec4 shade;
void main() {
  shade = color;
  gl_PointSize = size;
  gl_Position = color.a == 0.0 ? vec4(2.0, 2.0, 2.0, 1.0) : vec4((place - center) * scale, 0.0, 1.0);
}`;

const FRAGMENT = `#version 300 es
precision highp float;
in vec4 shade;
uniform float size;
uniform float alpha;
out vec4 result;
void main() {
  float opacity = shade.a * alpha;
  if (size > 3.5) opacity *= 1.0 - smoothstep(0.5 - 1.2 / size, 0.5, distance(gl_PointCoord, vec2(0.5)));
  result = vec4(shade.rgb * opacity, opacity);
}`;

const PLACE = 0;
const COLOR = 1;
const MAX_STEP = 31; // WebGL allows strides up to 255 bytes, and a place has 8
const MARGIN = 240; // pixels of the canvas beyond each edge of the frame
const STILL_MS = 120; // a view that has not changed for this long stays
const SLOW_MS = 28; // a frame that takes longer gets fewer points next time
const FAST_MS = 19;
const MIN_BUDGET = 20_000;

interface Uniforms {
  scale: WebGLUniformLocation | null;
  center: WebGLUniformLocation | null;
  size: WebGLUniformLocation | null;
  alpha: WebGLUniformLocation | null;
}

export class Renderer {
  private readonly gl: WebGL2RenderingContext;
  private uniforms: Uniforms = { scale: null, center: null, size: null, alpha: null };
  private buffers: { place: WebGLBuffer; color: WebGLBuffer } | null = null;
  private index: GridIndex | null = null;
  private colors: Uint8Array | null = null; // in the rows' order
  private view: View = { x: 0, y: 0, zoom: 1 };
  private size: Size = { width: 1, height: 1 };
  private ratio = 1;
  private budget = 100_000; // points of a frame
  private ranges: Range[] = [];
  private step = 1; // every how many-th point a frame draws
  private done = 0; // how many of the steps are drawn
  private frame = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private before = 0; // time of the frame before, while each frame draws
  private stale = true; // the canvas must be drawn anew, wherever it is
  private moved = false;
  private drawn: View = { x: 0, y: 0, zoom: 1 }; // the view that the canvas shows in its middle
  /** Called after the first frame of each view, to move what lies on top of the map. */
  onframe: () => void = () => undefined;

  constructor(private readonly canvas: HTMLCanvasElement) {
    const gl = canvas.getContext("webgl2", { antialias: false, preserveDrawingBuffer: true, powerPreference: "high-performance" });
    if (!gl) throw new Error("This browser does not offer WebGL2, which the map needs. Allow hardware or software acceleration in its settings.");
    this.gl = gl;
    canvas.addEventListener("webglcontextlost", this.lost);
    canvas.addEventListener("webglcontextrestored", this.restored);
    this.prepare();
  }

  setPoints(index: GridIndex): void {
    this.index = index;
    this.upload();
    this.redraw();
  }

  /** RGBA of each row; alpha 0 hides a point. */
  setColors(colors: Uint8Array): void {
    this.colors = colors;
    this.uploadColors();
    this.redraw();
  }

  setView(view: View): void {
    this.view = view;
    this.moved = true;
    this.schedule();
  }

  resize(size: Size, ratio: number): void {
    this.size = size;
    this.ratio = ratio;
    this.canvas.width = Math.round((size.width + 2 * MARGIN) * ratio);
    this.canvas.height = Math.round((size.height + 2 * MARGIN) * ratio);
    Object.assign(this.canvas.style, { left: `${-MARGIN}px`, top: `${-MARGIN}px`, width: `${size.width + 2 * MARGIN}px`, height: `${size.height + 2 * MARGIN}px` });
    this.redraw();
  }

  destroy(): void {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.timer);
    this.canvas.removeEventListener("webglcontextlost", this.lost);
    this.canvas.removeEventListener("webglcontextrestored", this.restored);
    this.gl.getExtension("WEBGL_lose_context")?.loseContext();
  }

  private redraw(): void {
    this.stale = true;
    this.schedule();
  }

  private schedule(): void {
    this.frame ||= requestAnimationFrame(this.draw);
  }

  private readonly draw = (now: number): void => {
    this.frame = 0;
    if (!this.buffers || !this.index) return;
    const changed = this.stale || this.moved;
    if (this.stale || (this.moved && !this.shift())) {
      this.begin(now);
      this.add();
    } else if (this.moved) this.before = 0;
    else this.add();
    this.moved = false;
    if (changed) this.onframe();
    if (this.done < this.step) this.later(changed);
  };

  /** Draws more points: at once if the view stays, else when it has stopped. */
  private later(moving: boolean): void {
    clearTimeout(this.timer);
    if (!moving) this.schedule();
    else this.timer = setTimeout(() => { this.before = 0; this.schedule(); }, STILL_MS);
  }

  /** Moves the canvas to the view; false if it does not reach that far. */
  private shift(): boolean {
    if (this.view.zoom !== this.drawn.zoom) return false;
    const scale = pixelsPerUnit(this.view, this.size);
    const [x, y] = [(this.drawn.x - this.view.x) * scale, (this.view.y - this.drawn.y) * scale];
    if (Math.max(Math.abs(x), Math.abs(y)) > MARGIN) return false;
    this.canvas.style.transform = `translate(${Math.round(x * this.ratio) / this.ratio}px, ${Math.round(y * this.ratio) / this.ratio}px)`;
    return true;
  }

  /** Clears the canvas and plans which points the frames of this view draw. */
  private begin(now: number): void {
    this.learn(now);
    this.stale = false;
    this.drawn = this.view;
    this.canvas.style.transform = "none";
    this.ranges = this.index?.ranges(shownArea(this.view, this.size, MARGIN)) ?? [];
    const near = this.ranges.reduce((count, [start, end]) => count + end - start, 0);
    this.step = Math.max(1, Math.min(MAX_STEP, Math.ceil(near / this.budget)));
    this.done = 0;
    const { gl } = this;
    const [width, height] = [this.size.width + 2 * MARGIN, this.size.height + 2 * MARGIN];
    gl.viewport(0, 0, this.canvas.width, this.canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT);
    const scale = pixelsPerUnit(this.view, this.size);
    gl.uniform2f(this.uniforms.scale, (2 * scale) / width, (2 * scale) / height);
    gl.uniform2f(this.uniforms.center, this.view.x, this.view.y);
    const room = Math.sqrt((width * height) / Math.max(1, near));
    gl.uniform1f(this.uniforms.size, Math.max(1.5, Math.min(7, room * 0.45)) * this.ratio);
    gl.uniform1f(this.uniforms.alpha, room < 2 ? 0.6 : 0.85);
  }

  private add(): void {
    if (this.done >= this.step) return;
    this.pass(this.done);
    this.done += 1;
  }

  /** Adapts the points of a frame to how long frames take. */
  private learn(now: number): void {
    const took = now - this.before;
    if (this.before && took < 1000) {
      if (took > SLOW_MS) this.budget = Math.max(MIN_BUDGET, this.budget * 0.75);
      else if (took < FAST_MS) this.budget = Math.min(4_000_000, this.budget * 1.1);
    }
    this.before = now;
  }

  /** Draws the points whose number, divided by the step, leaves `rest`. */
  private pass(rest: number): void {
    const { gl, buffers, step } = this;
    if (!buffers) return;
    for (const [start, end] of this.ranges) {
      const first = start + ((((rest - start) % step) + step) % step);
      if (first >= end) continue;
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers.place);
      gl.vertexAttribPointer(PLACE, 2, gl.FLOAT, false, 8 * step, 8 * first);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers.color);
      gl.vertexAttribPointer(COLOR, 4, gl.UNSIGNED_BYTE, true, 4 * step, 4 * first);
      gl.drawArrays(gl.POINTS, 0, Math.ceil((end - first) / step));
    }
  }

  private prepare(): void {
    const { gl } = this;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
      const shader = gl.createShader(kind);
      if (!shader) return;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, PLACE, "place");
    gl.bindAttribLocation(program, COLOR, "color");
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(`The map cannot be drawn: ${gl.getProgramInfoLog(program) ?? "the shaders were refused"}`);
    gl.useProgram(program);
    const at = (name: string) => gl.getUniformLocation(program, name);
    this.uniforms = { scale: at("scale"), center: at("center"), size: at("size"), alpha: at("alpha") };
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.clearColor(0, 0, 0, 0);
    gl.enableVertexAttribArray(PLACE);
    gl.enableVertexAttribArray(COLOR);
    this.buffers = { place: gl.createBuffer(), color: gl.createBuffer() };
    this.upload();
  }

  private upload(): void {
    const { gl, index, buffers } = this;
    if (!index || !buffers) return;
    const places = new Float32Array(index.order.length * 2);
    for (let at = 0; at < index.order.length; at += 1) {
      const row = index.order[at]!;
      places[2 * at] = index.x[row]!;
      places[2 * at + 1] = index.y[row]!;
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers.place);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    this.uploadColors();
  }

  private uploadColors(): void {
    const { gl, index, buffers } = this;
    if (!index || !buffers) return;
    const rows = this.colors && this.colors.length === index.order.length * 4 ? new Uint32Array(this.colors.buffer) : null;
    const sorted = new Uint32Array(index.order.length);
    if (rows) for (let at = 0; at < sorted.length; at += 1) sorted[at] = rows[index.order[at]!]!;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffers.color);
    gl.bufferData(gl.ARRAY_BUFFER, sorted, gl.DYNAMIC_DRAW);
  }

  private readonly lost = (event: Event): void => {
    event.preventDefault(); // it can be restored
    this.buffers = null;
  };

  private readonly restored = (): void => {
    this.prepare();
    this.redraw();
  };
}
