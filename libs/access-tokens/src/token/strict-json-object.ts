import { isUtf8 } from 'node:buffer';

/** Deeper nesting than any token of ours has. */
const MAX_DEPTH = 32;

/**
 * Reads bytes as one JSON object (RFC 8259): valid UTF-8 without byte order mark, at most 32 levels deep, and no object
 * in it with two members of one name. `JSON.parse` lets the last of two win, another reader takes the first, and a
 * token must not mean two things. Returns null for anything else.
 */
export function parseStrictJsonObject(bytes: Buffer): Record<string, unknown> | null {
  if (!isUtf8(bytes)) return null;
  const text = bytes.toString('utf8');
  try {
    if (!isShallowWithDistinctNames(text)) return null;
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Walks the text once, without recursion. Only its verdict on valid JSON matters: `JSON.parse` refuses the rest.
 *  @throws {SyntaxError} for a string that is not JSON */
function isShallowWithDistinctNames(text: string): boolean {
  // One entry per open bracket: the names seen so far in an object, null for an array.
  const open: (Set<string> | null)[] = [];
  let at = 0;
  let expectsName = false;
  while (at < text.length) {
    const char = text[at];
    if (char === '"') {
      const end = endOfString(text, at);
      const names = open.at(-1);
      if (expectsName && names) {
        const name = JSON.parse(text.slice(at, end)) as string;
        if (names.has(name)) return false;
        names.add(name);
        expectsName = false;
      }
      at = end;
      continue;
    }
    if (char === '{' || char === '[') {
      if (open.length === MAX_DEPTH) return false;
      open.push(char === '{' ? new Set() : null);
      expectsName = char === '{';
    } else if (char === '}' || char === ']') {
      open.pop();
      expectsName = false;
    } else if (char === ',') {
      expectsName = open.at(-1) instanceof Set;
    }
    at += 1;
  }
  return true;
}

/** Index just after the string that starts at `start`; the end of the text when it never closes. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return Math.min(at + 1, text.length);
}
