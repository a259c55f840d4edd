import { entityTag, isNotModified, mayWrite, parseEntityTags } from './entity-tag';

describe('parseEntityTags', () => {
  it('reads a list of strong and weak tags, commas in quotes included', () => {
    expect(parseEntityTags('"1", W/"2" ,"a,b",""')).toEqual([
      { weak: false, revision: '1' },
      { weak: true, revision: '2' },
      { weak: false, revision: 'a,b' },
      { weak: false, revision: '' },
    ]);
  });

  it('reads the tag that entityTag writes', () => {
    expect(parseEntityTags(entityTag('42'))).toEqual([{ weak: false, revision: '42' }]);
  });

  it('reads "any"', () => {
    expect(parseEntityTags(' * ')).toBe('*');
  });

  it.each(['', ' ', '1', '"1', '1"', '"1" "2"', 'w/"1"', '*, "1"', '"a b"', '"a"b"'])(
    'refuses %j',
    (text) => {
      expect(parseEntityTags(text)).toBeNull();
    },
  );
});

describe('conditions', () => {
  const conditions = (ifMatch: string | null, ifNoneMatch: string | null) => ({
    ifMatch: ifMatch === null ? null : parseEntityTags(ifMatch),
    ifNoneMatch: ifNoneMatch === null ? null : parseEntityTags(ifNoneMatch),
  });

  it.each([
    // If-Match, If-None-Match, current revision → may write
    [null, null, null, true],
    [null, null, '7', true],
    ['"7"', null, '7', true],
    ['"6", "7"', null, '7', true],
    ['"6"', null, '7', false],
    ['W/"7"', null, '7', false],
    ['"7"', null, null, false],
    ['*', null, '7', true],
    ['*', null, null, false],
    [null, '*', null, true],
    [null, '*', '7', false],
    [null, '"6"', '7', true],
    [null, 'W/"7"', '7', false],
    ['"7"', '"7"', '7', false],
  ])('If-Match %s and If-None-Match %s on revision %s: %s', (ifMatch, ifNoneMatch, current, allowed) => {
    expect(mayWrite(conditions(ifMatch, ifNoneMatch), current)).toBe(allowed);
  });

  it.each([
    [null, '7', false],
    ['"7"', '7', true],
    ['W/"7"', '7', true],
    ['"6", "8"', '7', false],
    ['*', '7', true],
  ])('a reader sending If-None-Match %s has revision %s: %s', (ifNoneMatch, current, notModified) => {
    expect(isNotModified(conditions(null, ifNoneMatch), current)).toBe(notModified);
  });
});
