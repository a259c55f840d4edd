import { barChart } from './chart.ts';

describe('a bar chart', () => {
  const contestants = [
    { name: 'ours', does: '', figures: [], spread: { median: 50, min: 40, max: 60 }, processors: null },
    {
      name: 'bare <pg>',
      does: '',
      figures: [],
      spread: { median: 100, min: 90, max: 120 },
      processors: null,
    },
  ];

  it('draws every bar from zero on one scale', () => {
    const svg = barChart('reads', { unit: 'requests/s', conditions: [], comparisons: [], contestants });
    const widths = [...svg.matchAll(/<rect x="230" y="\d+" width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths).toEqual([150, 300]);
  });

  it('escapes titles and names', () => {
    const svg = barChart('a & b', { unit: 'ms', conditions: [], comparisons: [], contestants });
    expect(svg).toContain('a &#38; b');
    expect(svg).toContain('bare &#60;pg&#62;');
  });
});
