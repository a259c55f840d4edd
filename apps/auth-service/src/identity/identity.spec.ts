import { formatSubject, parseSubject } from './identity';
import type { Subject } from './identity';

describe('subjects', () => {
  it.each<[Subject, string]>([
    [{ kind: 'person', personId: 1001 }, 'personid:1001'],
    [{ kind: 'user', userId: 9001 }, 'userid:9001'],
    [{ kind: 'technician', providerId: 815, technicianId: 7 }, 'technician:815:7'],
    [{ kind: 'technician-name', providerId: 815, name: 'Jörg: Müller' }, 'technician:815:Jörg: Müller'],
    [{ kind: 'technician-name', providerId: 815, name: '007' }, 'technician:815:007'],
  ])('%p reads back from %s', (subject, text) => {
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
  ])('does not read %p', (text) => {
    expect(parseSubject(text)).toBeNull();
  });
});
