const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** True when arrays and objects nest deeper than `maxDepth` levels. Iterative: recursion over hostile input ends in a RangeError. */
export function isDeeperThan(jsonText: string, maxDepth: number): boolean {
  // Each level takes an opening and a closing character.
  if (jsonText.length <= maxDepth * 2) return false;
  let depth = 0;
  for (let at = 0; at < jsonText.length; at += 1) {
    const code = jsonText.charCodeAt(at);
    if (code === QUOTE) at = endOfString(jsonText, at);
    else if (code === 0x5b || code === 0x7b) depth += 1;
    else if (code === 0x5d || code === 0x7d) depth -= 1;
    if (depth > maxDepth) return true;
  }
  return false;
}

/** Index of the quote that ends the string beginning at `start`, or the length of the text. */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charCodeAt(at) !== QUOTE) at += text.charCodeAt(at) === BACKSLASH ? 2 : 1;
  return at;
}
