/** A small line chart of the last values, as SVG. */

const SVG = "http://www.w3.org/2000/svg";
const WIDTH = 300;
const HEIGHT = 72;

function element(name, className) {
  const made = document.createElementNS(SVG, name);
  made.setAttribute("class", className);
  return made;
}

export class Chart {
  #values = [];
  #size;
  #line = element("polyline", "line");
  #area = element("polygon", "area");

  /** Draws the last `size` values into `figure`; the oldest disappear on the left. */
  constructor(figure, size) {
    this.#size = size;
    const svg = element("svg", "chart");
    svg.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("aria-hidden", "true"); // the number next to it says the same
    const floor = element("line", "floor");
    floor.setAttribute("x2", String(WIDTH));
    floor.setAttribute("y1", String(HEIGHT - 1));
    floor.setAttribute("y2", String(HEIGHT - 1));
    svg.append(floor, this.#area, this.#line);
    figure.append(svg);
  }

  add(value) {
    this.#values.push(value);
    if (this.#values.length > this.#size) this.#values.shift();
    const top = Math.max(1, ...this.#values) * 1.1;
    const first = this.#size - this.#values.length;
    const x = (index) => ((first + index) * WIDTH) / (this.#size - 1);
    const y = (number) => HEIGHT - 1 - (number / top) * (HEIGHT - 2);
    const points = this.#values.map((number, i) => `${x(i).toFixed(1)},${y(number).toFixed(1)}`);
    this.#line.setAttribute("points", points.join(" "));
    const floor = `${HEIGHT - 1}`;
    this.#area.setAttribute(
      "points",
      [`${x(0).toFixed(1)},${floor}`, ...points, `${WIDTH},${floor}`].join(" "),
    );
  }
}
