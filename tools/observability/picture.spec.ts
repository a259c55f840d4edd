import { dashboardPicture } from './picture.ts';

describe('a picture of a dashboard', () => {
  const up = { name: 'a & b', points: [[100, 0], [110, 2], [120, 1]] } as const; // prettier-ignore

  it('draws each line over the time and the values of its panel', () => {
    const svg = dashboardPicture('Platform', [{ title: 'Requests', unit: 'reqps', lines: [up] }]);
    expect(svg).toContain('points="52,114 180,30 308,72"');
    expect(svg).toContain('>2/s<');
    expect(svg).toContain('a &#38; b');
  });

  it('marks a panel without data, and counts the lines that the legend leaves out', () => {
    const svg = dashboardPicture('Platform', [
      { title: 'Errors', unit: 's', lines: [] },
      { title: 'Memory', unit: 'bytes', lines: [up, up, up, up, up] },
    ]);
    expect(svg.match(/no data/g)).toHaveLength(1);
    expect(svg).toContain('and 2 more');
  });
});
