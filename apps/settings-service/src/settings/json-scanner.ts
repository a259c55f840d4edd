// Within each expression, no two alternatives start with the same character, so that no text causes
// backtracking.
const WHITESPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/y;
const NUMBER_OR_LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * The text is not JSON (RFC 8259), or is nested too deeply. The message contains a position, never content.
 */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

/**
 * Scans a JSON text (RFC 8259) without building values, so that the caller can cut out the exact text of a
 * part. It does not recurse, so hostile nesting uses no stack. Every method starts at `position` and advances
 * it past what it read.
 */
export class JsonScanner {
  position = 0;

  /** @param maxDepth maximum number of nested arrays and objects within one `skipValue` */
  constructor(
    readonly text: string,
    private readonly maxDepth: number,
  ) {}

  /** Skips the four JSON whitespace characters. A byte order mark is not one of them. */
  skipWhitespace(): void {
    this.skip(WHITESPACE);
  }

  /** Skips the next character if it is `character`. Returns whether it did. */
  accept(character: string): boolean {
    if (this.text[this.position] !== character) return false;
    this.position += 1;
    return true;
  }

  /**
   * Skips `character`.
   * @throws {JsonSyntaxError} if the next character is another
   */
  expect(character: string): void {
    if (!this.accept(character)) this.fail();
  }

  /**
   * Skips trailing whitespace.
   * @throws {JsonSyntaxError} if anything else follows
   */
  expectEnd(): void {
    this.skipWhitespace();
    if (this.position !== this.text.length) this.fail();
  }

  /**
   * Skips one string with its quotes.
   * @throws {JsonSyntaxError} if there is no string, or it is malformed
   */
  skipString(): void {
    this.skip(STRING);
  }

  /**
   * Skips one value with everything in it.
   * @throws {JsonSyntaxError} if there is no value, it is malformed, or it is nested deeper than `maxDepth`
   */
  skipValue(): void {
    const closers: string[] = [];
    do {
      if (!this.enter(closers)) this.leave(closers);
    } while (closers.length > 0);
  }

  /**
   * Enters a non-empty array or object and stops at its first value: returns true. Skips any other value:
   * returns false.
   */
  private enter(closers: string[]): boolean {
    const closer = CLOSERS[this.text[this.position] ?? ''];
    if (closer === undefined) {
      this.skip(this.text[this.position] === '"' ? STRING : NUMBER_OR_LITERAL);
      return false;
    }
    if (closers.length >= this.maxDepth)
      throw new JsonSyntaxError(`nested deeper than ${String(this.maxDepth)} levels`);
    this.position += 1;
    this.skipWhitespace();
    if (this.accept(closer)) return false;
    closers.push(closer);
    if (closer === '}') this.skipMemberName();
    return true;
  }

  /**
   * Continues after a value: closes every array or object that ends here, and stops at the next value or when
   * none is open.
   */
  private leave(closers: string[]): void {
    for (let closer = closers.at(-1); closer !== undefined; closer = closers.at(-1)) {
      this.skipWhitespace();
      if (this.accept(',')) {
        this.skipWhitespace();
        if (closer === '}') this.skipMemberName();
        return;
      }
      this.expect(closer);
      closers.pop();
    }
  }

  private skipMemberName(): void {
    this.skipString();
    this.skipWhitespace();
    this.expect(':');
    this.skipWhitespace();
  }

  private skip(token: RegExp): void {
    token.lastIndex = this.position;
    if (!token.test(this.text)) this.fail();
    this.position = token.lastIndex;
  }

  private fail(): never {
    throw new JsonSyntaxError(`not valid JSON at character ${String(this.position)}`);
  }
}
