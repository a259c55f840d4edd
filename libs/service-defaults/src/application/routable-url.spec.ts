import { routableUrl } from './fastify-options';

describe('routableUrl', () => {
  it('returns ordinary targets unchanged', () => {
    for (const target of ['/', '/a/b%2Fc?d=%C4%B0&e=\u00e4', '*', '/%C3%B6', '/%25C4%25B0']) {
      expect(routableUrl(target)).toBe(target);
    }
  });

  it('returns the path of an absolute URL, as sent to a proxy', () => {
    expect(routableUrl('http://auth.example:80/auth/me?a=http://b/')).toBe('/auth/me?a=http://b/');
    expect(routableUrl('HTTPS://auth.example')).toBe('/');
    expect(routableUrl('http://auth.example?a=/b')).toBe('/?a=/b');
    expect(routableUrl('/http://auth.example/')).toBe('/http://auth.example/');
  });

  it('rewrites the dotted capital I so that lowercasing keeps its length', () => {
    const decoded = decodeURIComponent(routableUrl('/%c4%B0stanbul/%C4%B0?q=%C4%B0').split('?')[0] ?? '');
    expect(decoded).toHaveLength(decoded.toLowerCase().length);
    expect(decoded.normalize('NFC')).toBe('/İstanbul/İ');
  });

  it('is needed for no other character', () => {
    const shifting: string[] = [];
    for (let codePoint = 0; codePoint <= 0x10ffff; codePoint += 1) {
      const character = String.fromCodePoint(codePoint);
      if (character.toLowerCase().length !== character.length) shifting.push(character);
    }
    expect(shifting).toEqual(['İ']);
  });
});
