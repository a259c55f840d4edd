/** Where a Markdown page links to: relative addresses without titles; images and fenced blocks included. */
export function relativeLinks(markdown: string): string[] {
  const targets = [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');
  return targets.filter((target) => !/^([a-z]+:|#)/.test(target));
}

/** The anchors of a page's headings, as GitHub makes them. */
export function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) =>
    (heading ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

/** The npm scripts that a page tells its readers to run. */
export function npmScripts(markdown: string): string[] {
  const commands = [...markdown.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(start|test|stop)\b)/g)];
  return [...new Set(commands.map(([, script, short]) => script ?? short ?? ''))];
}

/** The metrics that the table of docs/operations.md describes for a service, those of all services included. */
export function describedMetrics(operations: string, service: string): string[] {
  const rows = operations.split('\n').filter((line) => /^\| `/.test(line));
  return rows.flatMap((row) => {
    const [, names = '', of = ''] = row.split('|').map((cell) => cell.trim());
    return of === 'all' || of === service
      ? [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name as string)
      : [];
  });
}
