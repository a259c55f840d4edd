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
