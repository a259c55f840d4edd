/** A value of plain objects, arrays, strings, numbers, booleans and nulls as YAML 1.2 in block style. Members that are undefined are
 *  left out. Every string is quoted as in JSON, which YAML reads the same way, so that none is mistaken for something else. */
export function yamlText(value: unknown): string {
  return `${lines(value).join('\n')}\n`;
}

function lines(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => nested('-', item, ''));
  if (typeof value !== 'object' || value === null) return [JSON.stringify(value)];
  return members(value).flatMap(([key, member]) => nested(`${keyText(key)}:`, member, '  '));
}

/** `- ` and its item share a line; a key stands above its members. */
function nested(prefix: string, value: unknown, indent: string): string[] {
  if (isEmpty(value)) return [`${prefix} ${Array.isArray(value) ? '[]' : '{}'}`];
  const inner = lines(value);
  if (typeof value !== 'object' || value === null) return [`${prefix} ${inner.join('')}`];
  if (prefix === '-') return inner.map((line, index) => `${index === 0 ? '- ' : '  '}${line}`);
  return [prefix, ...inner.map((line) => `${indent}${line}`)];
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && members(value).length === 0;
}

function members(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, member]) => member !== undefined);
}

/** A key that is no plain word, or that YAML would read as something else, is quoted. */
function keyText(key: string): string {
  const isPlain = /^[A-Za-z][\w-]*$/.test(key) && !/^(true|false|null|yes|no|on|off|y|n)$/i.test(key);
  return isPlain ? key : JSON.stringify(key);
}
