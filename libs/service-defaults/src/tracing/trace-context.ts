/** The trace identifier (32 hexadecimal digits) of the request being handled, or undefined outside of one. */
export function currentTraceId(): string | undefined {
  return undefined;
}
