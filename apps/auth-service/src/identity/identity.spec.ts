import { formatSubject, isLegacySubject, parseSubject, userNameKey } from './identity';
import type { Subject } from './identity';

describe('subjects', () => {
  it.each<[Subject, string]>([
    [{ kind: 'person', personId: 1001 }, 'personid:1001'],
    [{ kind: 'user', userId: 9001 }, 'userid:9001'],
    [{ kind: 'technician', providerId: 815, technicianId: 7 }, 'technician:815:7'],
    [{ kind: 'technician-name', providerId: 815, name: 'Jörg: Müller' }, 'technician:815:Jörg: Müller'],
    [{ kind: 'technician-name', providerId: 815, name: '007' }, 'technician:815:007'],
  ])('%p is formatted as and parsed from %s', (subject, text) => {
    expect(formatSubject(subject)).toBe(text);
    expect(parseSubject(text)).toEqual(subject);
  });

  it.each([
    '',
    'personid:',
    'personid:01',
    'personid:1:x',
    'personid:99999999999999999999',
    'technician:815',
    'someone:1',
    'xpersonid:1',
    'personid:1x',
    'userid:1\n',
    'technician:815:',
  ])('does not parse %p', (text) => {
    expect(parseSubject(text)).toBeNull();
  });
});

describe('the subject of a legacy token', () => {
  it.each([
    ['legacy:https://legacy.platform.test:carl', true],
    ['legacy:issuer:c', true],
    ['legacy:issuer:', false],
    ['legacy:issuer', false],
    ['legacy::carl', false],
    ['xlegacy:issuer:carl', false],
    ['personid:1001', false],
  ])('has an issuer and a subject: %s, %p', (text, expected) => {
    expect(isLegacySubject(text)).toBe(expected);
  });
});

describe('user names', () => {
  it('compare equal regardless of letter case and Unicode composition', () => {
    expect(userNameKey('J\u00d6RG')).toBe('j\u00f6rg');
    expect(userNameKey('jo\u0308rg')).toBe('j\u00f6rg');
    expect(userNameKey('jorg')).not.toBe(userNameKey('j\u00f6rg'));
  });
});
