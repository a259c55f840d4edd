import { anchors, npmScripts, readExamples, relativeLinks, shellScript, typeScriptModule } from './examples';

const FENCE = '```';
const PAGE = `# Page

${FENCE}sh
# not a heading
one
${FENCE}

## Second

${FENCE}text
not run
${FENCE}

${FENCE}ts
const two = 2;
${FENCE}

${FENCE}sh
three
${FENCE}
`;

describe('examples of a page', () => {
  const examples = readExamples(PAGE);

  it('are its sh and ts blocks with their headings', () => {
    expect(examples).toEqual([
      { heading: 'Page', language: 'sh', code: '# not a heading\none\n' },
      { heading: 'Second', language: 'ts', code: 'const two = 2;\n' },
      { heading: 'Second', language: 'sh', code: 'three\n' },
    ]);
  });

  it('are joined into one program that marks the end of each', () => {
    const script = shellScript(examples.filter(({ language }) => language === 'sh'));
    expect(script).toMatch(/^set -u\n# not a heading\none\n\ncurl .*URL"0\n\nthree\n\ncurl .*URL"1\n$/);
    const module = typeScriptModule(examples.slice(1, 2), 'end();\n');
    expect(module).toMatch(/^const two = 2;\n\nawait fetch\(.* '0'\);\nend\(\);\n$/);
  });
});

describe('the contents of a page', () => {
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
