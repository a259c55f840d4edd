import { PUBLICATION_SECONDS, RETIREMENT_SECONDS, keyChangeRefusal } from './signing-key';
import type { SigningKeyChange, SigningKeyState } from './signing-key';

const OLD = 10 * RETIREMENT_SECONDS;

describe('the life of a signing key', () => {
  // State, age in seconds, change; then the expected refusal without and with force, null if the change is
  // allowed.
  it.each<[SigningKeyState, number, SigningKeyChange, RegExp | null, RegExp | null]>([
    ['next', OLD, 'activate', null, null],
    ['next', PUBLICATION_SECONDS, 'activate', null, null],
    ['next', PUBLICATION_SECONDS - 1, 'activate', /published only 119 s ago/, null],
    ['active', OLD, 'activate', /active already/, /active already/],
    ['retired', OLD, 'activate', /never signs again/, /never signs again/],
    ['removed', OLD, 'activate', /never signs again/, /never signs again/],
    ['next', OLD, 'retire', /remove it instead/, /remove it instead/],
    ['active', OLD, 'retire', /pass --force/, null],
    ['retired', OLD, 'retire', /retired already/, /retired already/],
    ['removed', OLD, 'retire', /removed already/, /removed already/],
    ['next', 0, 'remove', null, null],
    ['active', OLD, 'remove', /signs at present/, /signs at present/],
    ['retired', RETIREMENT_SECONDS, 'remove', null, null],
    ['retired', RETIREMENT_SECONDS - 3_600, 'remove', /up to 1 h more/, null],
    ['removed', OLD, 'remove', /removed already/, /removed already/],
  ])('%s for %i s: %s', (state, ageSeconds, change, refusal, forcedRefusal) => {
    const key = { kid: 'k', state, ageSeconds };
    const refusals = [keyChangeRefusal(key, change, false), keyChangeRefusal(key, change, true)];
    [refusal, forcedRefusal].forEach((expected, index) => {
      if (expected === null) expect(refusals[index]).toBeNull();
      else expect(refusals[index]).toMatch(expected);
    });
  });
});
