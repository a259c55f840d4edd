import { anchors, npmScripts, relativeLinks } from './pages';

describe('what is read off a page', () => {
  it('are its relative links', () => {
    const page = '[a](b.md) [c](https://example.com) [d](../e.md#f-g) [h](#i) | [`j`](k/README.md) |';
    expect(relativeLinks(page)).toEqual(['b.md', '../e.md#f-g', 'k/README.md']);
  });

  it('are the anchors of its headings', () => {
    expect(anchors('# Calling auth-service\n\ntext\n\n## `npm start`, and more')).toEqual([
      'calling-auth-service',
      'npm-start-and-more',
    ]);
  });

  it('are the npm scripts it names', () => {
    expect(
      npmScripts('`npm start`, `npm run --silent auth:admin -- --help`, npm ci, `npm run tour`'),
    ).toEqual(['start', 'auth:admin', 'tour']);
  });
});
