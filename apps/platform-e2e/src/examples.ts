/** A fenced block of a page that a reader is meant to run. */
export interface Example {
  /** The heading that it stands under. */
  heading: string;
  language: 'sh' | 'ts';
  code: string;
}

/** The examples of a Markdown page, in its order. Blocks in other languages are none. */
export function readExamples(markdown: string): Example[] {
  const examples: Example[] = [];
  let heading = '';
  for (const [, title, language, code] of markdown.matchAll(/^#{1,6} (.+)$|^```(\w*)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else if ((language === 'sh' || language === 'ts') && code !== undefined)
      examples.push({ heading, language, code });
  }
  return examples;
}

/** Where a running example says that it is at its end: a GET of this path with its number behind it. */
export const END_OF_EXAMPLE = '/end-of-example/';

/** All shell examples as one script, as if pasted into one shell; it asks `END_OF_EXAMPLE_URL` after each.
 *  With -u, because a variable that no example has set is a mistake of the page. */
export function shellScript(examples: readonly Example[]): string {
  return join(examples, 'set -u\n', (end) => `curl -sS -o /dev/null "$END_OF_EXAMPLE_URL"${end}\n`);
}

/** All TypeScript examples as one module; it asks `END_OF_EXAMPLE_URL` after each, and ends with `epilogue`. */
export function typeScriptModule(examples: readonly Example[], epilogue: string): string {
  return (
    join(examples, '', (end) => `await fetch(process.env['END_OF_EXAMPLE_URL'] + '${end}');\n`) + epilogue
  );
}

function join(examples: readonly Example[], head: string, mark: (end: string) => string): string {
  return head + examples.map(({ code }, index) => `${code}\n${mark(String(index))}`).join('\n');
}
