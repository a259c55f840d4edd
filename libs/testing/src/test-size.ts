/** How much a test with a load does: what its variable says, else `full` on the build server (`npm test -- --all`), else `quick`. */
export function testSize(variable: string, { quick, full }: { quick: number; full: number }): number {
  return Number(process.env[variable] ?? (process.env['TEST_FULL_SIZE'] === 'true' ? full : quick));
}
