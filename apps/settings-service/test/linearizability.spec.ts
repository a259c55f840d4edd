import { contradictions } from './linearizability';
import type { Observation } from './linearizability';

const at = (
  kind: Observation['kind'],
  value: string | null,
  startedAt: number,
  endedAt: number,
): Observation => ({
  kind,
  value,
  startedAt,
  endedAt,
});
const wrote = (value: string) => ({ operation: 'write', value });
const deleted = (value: string) => ({ operation: 'delete', value });

describe('the linearizability check itself', () => {
  it('accepts observations that one order explains', () => {
    const seen = [
      at('PUT', '1', 0, 10),
      at('PUT', '2', 5, 20),
      at('DELETE', '2', 21, 30),
      at('DELETE', null, 25, 40),
      at('GET', null, 0, 3),
      at('GET', '1', 6, 12),
      at('GET', '2', 13, 25),
      at('GET', null, 24, 31),
    ];
    expect(contradictions([wrote('1'), wrote('2'), deleted('2')], seen)).toEqual([]);
  });

  it.each<[string, Parameters<typeof contradictions>[0], Observation[]]>([
    ['a lost write', [wrote('2')], [at('PUT', '1', 0, 1), at('PUT', '2', 2, 3), at('GET', '1', 4, 5)]],
    [
      'a stale read',
      [wrote('1'), wrote('2')],
      [at('PUT', '1', 0, 1), at('PUT', '2', 2, 3), at('GET', '1', 4, 5)],
    ],
    [
      'a read going back',
      [wrote('1'), wrote('2')],
      [at('PUT', '1', 0, 1), at('PUT', '2', 2, 9), at('GET', '2', 3, 4), at('GET', '1', 5, 6)],
    ],
    ['a read of the future', [wrote('1')], [at('PUT', '1', 5, 6), at('GET', '1', 0, 1)]],
    ['writes in the wrong order', [wrote('2'), wrote('1')], [at('PUT', '1', 0, 1), at('PUT', '2', 2, 3)]],
    ['an entry out of nowhere', [wrote('1')], []],
    [
      'a delete that found nothing although a value existed',
      [wrote('1')],
      [at('PUT', '1', 0, 1), at('DELETE', null, 2, 3)],
    ],
  ])('finds %s', (_case, history, seen) => {
    expect(contradictions(history, seen)).not.toEqual([]);
  });
});
