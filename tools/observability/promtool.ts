import { execFileSync } from 'node:child_process';

/** Runs promtool and returns its output. @throws {Error} with its output if it finds a problem */
export function promtool(program: string, ...args: string[]): string {
  return execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** Series that Prometheus itself creates. */
const NOT_EXPOSED: ReadonlySet<string> = new Set(['up', 'ALERTS']);

/**
 * Returns the metrics that an expression reads: every name that is no function, label, keyword or recording
 * rule.
 */
export function metricsOf(expression: string): string[] {
  const bare = expression
    .replace(/"[^"]*"/g, '')
    .replace(/\{[^}]*\}/g, '')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right) *\([^)]*\)/g, '')
    .replace(/\[[^\]]*\]/g, '');
  const names = [...bare.matchAll(/(?<![\w:.])([a-zA-Z_][\w:]*)(?! *[\w:(])/g)].map(
    ([, name]) => name as string,
  );
  return [...new Set(names)].filter(
    (name) => !NOT_EXPOSED.has(name) && !name.includes(':') && !/^(?:and|or|unless|bool|offset)$/.test(name),
  );
}

/** Returns the values that an expression compares the label `job` with. */
export function jobsIn(expression: string): string[] {
  return [...expression.matchAll(/[{,]\s*job\s*(?:=|=~|!=|!~)\s*"([^"]*)"/g)].flatMap(([, values]) =>
    (values as string).split('|'),
  );
}
