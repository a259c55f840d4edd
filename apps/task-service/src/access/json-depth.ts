/** True when arrays and objects nest at most `limit` deep. Iterative, because recursion is what deep values break. */
export function isJsonWithinDepth(value: unknown, limit: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > limit) return false;
    level = level.flatMap((each) => (each !== null && typeof each === 'object' ? Object.values(each) : []));
    level = level.filter((each) => each !== null && typeof each === 'object');
  }
  return true;
}
