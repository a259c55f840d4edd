/** A line of a panel: its name, and points of seconds since the epoch and value. */
export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [seconds: number, value: number])[];
}

export interface DrawnPanel {
  readonly title: string;
  /** Unit in Grafana's notation. */
  readonly unit: string;
  readonly lines: readonly Line[];
}

const COLUMNS = 3;
const CELL = { width: 320, height: 176 };
const PLOT = { left: 52, top: 30, width: 256, height: 84 };
const HEAD = 36;
/** Maximum number of names in a panel's legend; further lines are only counted. */
const MOST_NAMES = 3;
/** Maximum length of a name in the legend, in characters. */
const LONGEST_NAME = 36;
const COLOURS = ['#2563eb', '#dc2626', '#16a34a', '#d97706', '#7c3aed', '#0891b2', '#db2777', '#65a30d'];

/** Draws a dashboard as Grafana would show it, as plain SVG that is legible on light and dark pages. */
export function dashboardPicture(title: string, panels: readonly DrawnPanel[]): string {
  const width = COLUMNS * CELL.width;
  const height = HEAD + Math.ceil(panels.length / COLUMNS) * CELL.height;
  const cells = panels.map((panel, index) => {
    const x = (index % COLUMNS) * CELL.width;
    const y = HEAD + Math.floor(index / COLUMNS) * CELL.height;
    return `<g transform="translate(${x} ${y})">\n    ${drawPanel(panel)}\n  </g>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="11" fill="#334155">
  <rect width="100%" height="100%" rx="6" fill="#f8fafc"/>
  <text x="12" y="23" font-size="14" font-weight="600">${escapeXml(title)}</text>
  ${cells.join('\n  ')}
</svg>
`;
}

function drawPanel({ title, unit, lines: unsorted }: DrawnPanel): string {
  const highest = ({ points }: Line): number => Math.max(...points.map(([, value]) => value));
  // The legend names the highest lines.
  const lines = unsorted.toSorted((one, other) => highest(other) - highest(one));
  const points = lines.flatMap((line) => line.points);
  const times = points.map(([seconds]) => seconds);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const largest = Math.max(...points.map(([, value]) => value), 0) || 1;
  const { left, top, width, height } = PLOT;
  const bottom = top + height;
  const place = ([seconds, value]: Line['points'][number]): string => {
    const x = left + (width * (seconds - first)) / (last - first || 1);
    return `${Math.round(x)},${Math.round(bottom - (height * value) / largest)}`;
  };
  const colour = (index: number): string => COLOURS[index % COLOURS.length]!;
  const more = lines.length - MOST_NAMES;
  return [
    `<text x="${left}" y="20" font-weight="600">${escapeXml(title)}</text>`,
    `<text x="${left - 6}" y="${top + 8}" text-anchor="end">${formatValue(largest, unit)}</text>`,
    `<text x="${left - 6}" y="${bottom}" text-anchor="end">0</text>`,
    `<path d="M${left} ${top}V${bottom}H${left + width}" fill="none" stroke="#94a3b8"/>`,
    ...lines.map(
      (line, index) =>
        `<polyline points="${line.points.map(place).join(' ')}" fill="none" stroke="${colour(index)}" stroke-width="1.3"/>`,
    ),
    ...lines
      .slice(0, MOST_NAMES)
      .map(
        ({ name }, index) =>
          `<text x="${left}" y="${bottom + 15 + index * 13}" fill="${colour(index)}">${escapeXml(shortened(name))}${index === MOST_NAMES - 1 && more > 0 ? `, and ${more} more` : ''}</text>`,
      ),
    ...(lines.length === 0 ? [`<text x="${left + 8}" y="${top + height / 2}">no data</text>`] : []),
  ].join('\n    ');
}

function shortened(name: string): string {
  return name.length > LONGEST_NAME ? `${name.slice(0, LONGEST_NAME)}…` : name;
}

function formatValue(value: number, unit: string): string {
  const rounded = (number: number): string => String(Number(number.toPrecision(2)));
  if (unit === 's') return value < 1 ? `${rounded(value * 1_000)} ms` : `${rounded(value)} s`;
  if (unit === 'bytes') return `${rounded(value / 1e6)} MB`;
  if (unit === 'percentunit') return `${rounded(value * 100)} %`;
  return unit === 'short' ? rounded(value) : `${rounded(value)}/s`;
}

export function escapeXml(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
