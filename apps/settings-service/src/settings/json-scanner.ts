// No two alternatives begin alike, so that no text makes a match slow.
const WHITESPACE = /[ \t\n\r]*/y;
const STRING = /"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4}))*"/y;
const NUMBER_OR_LITERAL = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const CLOSERS: Readonly<Record<string, string>> = { '{': '}', '[': ']' };

/**
 * The text is not JSON (RFC 8259), or it is nested too deeply. The message holds a position, never content.
 */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

/**
 * Walks a JSON text (RFC 8259) without building a value, so that the caller can cut out the exact text of a
 * part. It never recurses: hostile nesting costs no stack. Every method starts at `position` and leaves it
 * just behind what it read.
 */
export class JsonScanner {
  position = 0;

  /** @param maxDepth how many arrays and objects may be open at once within one `skipValue`. */
  constructor(
    readonly text: string,
    private readonly maxDepth: number,
  ) {}

  /** Steps over the four JSON whitespace characters; a byte order mark is not one of them. */
  skipWhitespace(): void {
    this.skip(WHITESPACE);
  }

  /** True, and one further, when the next character is `character`. */
  accept(character: string): boolean {
    if (this.text[this.position] !== character) return false;
    this.position += 1;
    return true;
  }

  /** @throws {JsonSyntaxError} unless the next character is `character`. */
  expect(character: string): void {
    if (!this.accept(character)) this.fail();
  }

  /** @throws {JsonSyntaxError} unless only whitespace is left. */
  expectEnd(): void {
    this.skipWhitespace();
    if (this.position !== this.text.length) this.fail();
  }

  /**
   * Steps over one string, quotes included.
   * @throws {JsonSyntaxError} if there is none, or it is malformed.
   */
  skipString(): void {
    this.skip(STRING);
  }

  /** Steps over one value with everything in it, from its first character to its last.
   *  @throws {JsonSyntaxError} if there is none, it is malformed, or deeper than `maxDepth`. */
  skipValue(): void {
    const closers: string[] = [];
    do {
      if (!this.enter(closers)) this.leave(closers);
    } while (closers.length > 0);
  }

  /** Goes up to the first value of a non-empty array or object: true. Steps over anything else. */
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

  /** After a value: closes whatever ends here; stops in front of the next value, or when nothing is open. */
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
