import { allocatedKilobytes } from './allocations.ts';

it('sums the allocations between collections, separately for each heap', () => {
  const log = `
[20073:0x17]       16 ms: Scavenge 4.0 (6.0) -> 3.0 (7.0) MB, pooled: 0 MB, 0.90 / 0.00 ms  (average mu = 1.000) allocation failure;
{"msg":"[1:0x17] 9.0 (1) -> 1.0 ("}
[20073:0x18]       17 ms: Scavenge 2.0 (6.0) -> 1.5 (7.0) MB, pooled: 0 MB, 0.90 / 0.00 ms  (average mu = 1.000) allocation failure;
[20073:0x17]       18 ms: Mark-Compact (reduce) 7.0 (7.2) -> 2.0 (9.7) MB, pooled: 0 MB, 1.62 / 0.00 ms
[20073:0x18]       19 ms: Scavenge 2.5 (6.0) -> 1.5 (7.0) MB, pooled: 0 MB, 0.90 / 0.00 ms  (average mu = 1.000) allocation failure;
`;
  expect(allocatedKilobytes(log)).toBe((4 + 1) * 1_024);
});
