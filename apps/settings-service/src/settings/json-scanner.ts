const TAB = 0x09;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const SIMPLE_ESCAPES = new Set(Array.from('"\\/bfnrt', (each) => each.charCodeAt(0)));
const LITERALS: readonly string[] = ['true', 'false', 'null'];

/** The text is not JSON (RFC 8259), or it is nested too deeply. The message holds a position, never content. */
export class JsonSyntaxError extends Error {
  override readonly name = 'JsonSyntaxError';
}

/**
 * Walks a JSON text (RFC 8259) without building a value, so that the caller can cut out the exact text of a part.
 * It never recurses: hostile nesting costs no stack. Every method starts at `position` and leaves it just behind what it read.
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
    for (; ; this.position += 1) {
      const code = this.peek();
      if (code !== SPACE && code !== LINE_FEED && code !== CARRIAGE_RETURN && code !== TAB) return;
    }
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

  /** Steps over one string, quotes included. @throws {JsonSyntaxError} if there is none, or it is malformed. */
  skipString(): void {
    if (this.peek() !== QUOTE) this.fail();
    for (this.position += 1; ; this.position += 1) {
      const code = this.peek();
      if (code === BACKSLASH) this.skipEscape();
      else if (code === QUOTE) break;
      // NaN, past the end, fails the comparison too.
      else if (!(code >= SPACE)) this.fail();
    }
    this.position += 1;
  }

  /** Steps over one value with everything in it, from its first character to its last.
   *  @throws {JsonSyntaxError} if there is none, it is malformed, or deeper than `maxDepth`. */
  skipValue(): void {
    const closers: number[] = [];
    do {
      if (!this.openContainer(closers)) {
        this.skipScalar();
        this.closeContainers(closers);
      }
    } while (closers.length > 0);
  }

  /** Enters a non-empty array or object up to its first value: true. Steps over an empty one and what it ends: also true. */
  private openContainer(closers: number[]): boolean {
    const code = this.peek();
    if (code !== OPEN_BRACE && code !== OPEN_BRACKET) return false;
    if (closers.length >= this.maxDepth)
      throw new JsonSyntaxError(`nested deeper than ${String(this.maxDepth)} levels`);
    const closer = code === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
    this.position += 1;
    this.skipWhitespace();
    if (this.peek() === closer) {
      this.position += 1;
      this.closeContainers(closers);
      return true;
    }
    closers.push(closer);
    if (closer === CLOSE_BRACE) this.skipMemberName();
    return true;
  }

  /** After a value: closes whatever ends here; stops in front of the next value, or when nothing is open. */
  private closeContainers(closers: number[]): void {
    while (closers.length > 0) {
      this.skipWhitespace();
      const code = this.peek();
      const closer = closers[closers.length - 1];
      if (code !== COMMA && code !== closer) this.fail();
      this.position += 1;
      if (code === COMMA) {
        this.skipWhitespace();
        if (closer === CLOSE_BRACE) this.skipMemberName();
        return;
      }
      closers.pop();
    }
  }

  private skipMemberName(): void {
    this.skipString();
    this.skipWhitespace();
    if (this.peek() !== COLON) this.fail();
    this.position += 1;
    this.skipWhitespace();
  }

  private skipScalar(): void {
    const code = this.peek();
    if (code === QUOTE) this.skipString();
    else if (code === MINUS || isDigit(code)) this.skipNumber();
    else this.skipLiteral();
  }

  private skipLiteral(): void {
    const literal = LITERALS.find((each) => this.text.startsWith(each, this.position));
    if (literal === undefined) this.fail();
    this.position += literal.length;
  }

  private skipNumber(): void {
    if (this.peek() === MINUS) this.position += 1;
    // No digit may follow a leading zero; whoever reads on refuses it.
    if (this.peek() === ZERO) this.position += 1;
    else this.skipDigits();
    if (this.peek() === DOT) {
      this.position += 1;
      this.skipDigits();
    }
    // | 0x20 folds the case of a letter.
    if ((this.peek() | 0x20) === 0x65) {
      this.position += 1;
      if (this.peek() === PLUS || this.peek() === MINUS) this.position += 1;
      this.skipDigits();
    }
  }

  private skipDigits(): void {
    if (!isDigit(this.peek())) this.fail();
    while (isDigit(this.peek())) this.position += 1;
  }

  /** From the backslash to the last character of the escape, which the caller steps over. */
  private skipEscape(): void {
    this.position += 1;
    const code = this.peek();
    if (SIMPLE_ESCAPES.has(code)) return;
    if (code !== LOWER_U) this.fail();
    for (let digit = 0; digit < 4; digit += 1) {
      this.position += 1;
      if (!isHexDigit(this.peek())) this.fail();
    }
  }

  private peek(): number {
    return this.text.charCodeAt(this.position);
  }

  private fail(): never {
    throw new JsonSyntaxError(`not valid JSON at character ${String(this.position)}`);
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= NINE;
}

function isHexDigit(code: number): boolean {
  const folded = code | 0x20;
  return isDigit(code) || (folded >= 0x61 && folded <= 0x66);
}
