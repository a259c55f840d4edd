import { escapeXml } from '#observability/picture.ts';
import { type ContestResult, formatFigure } from './contest.ts';

const WIDTH = 760;
const LABEL_WIDTH = 230;
const FIGURE_WIDTH = 170;
const ROW_HEIGHT = 30;
const BAR_HEIGHT = 18;
const COLOURS = ['#2563eb', '#94a3b8', '#cbd5e1', '#e2e8f0'];

/**
 * Draws a bar from zero for each contestant, with a line from the lowest to the highest round. Plain SVG that
 * is readable on light and dark pages.
 */
export function barChart(title: string, { unit, contestants }: ContestResult): string {
  const largest = Math.max(...contestants.map(({ spread }) => spread.max));
  const scale = largest > 0 ? (WIDTH - LABEL_WIDTH - FIGURE_WIDTH) / largest : 0;
  const rows = contestants.map(({ name, spread }, index) => {
    const top = 34 + index * ROW_HEIGHT;
    const middle = top + BAR_HEIGHT / 2;
    const x = (value: number): string => (LABEL_WIDTH + value * scale).toFixed(1);
    const width = (spread.median * scale).toFixed(1);
    const fill = COLOURS[Math.min(index, COLOURS.length - 1)]!;
    return [
      `<text x="${LABEL_WIDTH - 8}" y="${middle + 4}" text-anchor="end">${escapeXml(name)}</text>`,
      `<rect x="${LABEL_WIDTH}" y="${top}" width="${width}" height="${BAR_HEIGHT}" rx="2" fill="${fill}"/>`,
      `<line x1="${x(spread.min)}" x2="${x(spread.max)}" y1="${middle}" y2="${middle}" stroke="#0f172a" stroke-width="1.5"/>`,
      `<text x="${Number(x(spread.max)) + 8}" y="${middle + 4}">${formatFigure(spread.median)} ${escapeXml(unit)}</text>`,
    ].join('\n  ');
  });
  const height = 34 + contestants.length * ROW_HEIGHT + 8;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}" font-family="system-ui, sans-serif" font-size="13" fill="#334155">
  <rect width="100%" height="100%" rx="6" fill="#f8fafc"/>
  <text x="12" y="21" font-weight="600">${escapeXml(title)}</text>
  ${rows.join('\n  ')}
</svg>
`;
}
