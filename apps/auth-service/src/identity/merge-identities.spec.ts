import { Persona } from '@platform/personas';
import type { IdentityRecord } from './identity';
import { mergeIdentities } from './merge-identities';

const stored = <T>(...values: T[]): [T, null][] => values.map((value) => [value, null]);

function record(store: IdentityRecord['store'], overrides: Partial<IdentityRecord> = {}): IdentityRecord {
  return {
    store,
    accountId: 1,
    userNameKey: store,
    personId: null,
    userId: null,
    providerId: null,
    name: null,
    personas: Persona.None,
    roles: [],
    facilities: [],
    groups: [],
    disabled: false,
    ...overrides,
  };
}

const person = (overrides: Partial<IdentityRecord> = {}): IdentityRecord =>
  record('person-directory', {
    personId: 1,
    name: 'Pat',
    personas: Persona.Customer,
    facilities: stored(2, 1),
    ...overrides,
  });
const internal = (overrides: Partial<IdentityRecord> = {}): IdentityRecord =>
  record('internal-legacy', {
    userId: 9,
    name: 'P.',
    personas: Persona.InternalPartner,
    groups: stored('B', 'A'),
    ...overrides,
  });
const technician = (overrides: Partial<IdentityRecord> = {}): IdentityRecord =>
  record('service-providers', {
    accountId: 7,
    providerId: 815,
    name: 'Pat T.',
    personas: Persona.ServiceProvider,
    facilities: stored(3, 1),
    ...overrides,
  });

describe('mergeIdentities', () => {
  it('is absent if no store knows the user', () => {
    expect(mergeIdentities([])).toEqual({ outcome: 'absent' });
  });

  it('names a person before a user before a technician', () => {
    const subjectOf = (...records: IdentityRecord[]): unknown => {
      const merged = mergeIdentities(records);
      return merged.outcome === 'resolved' ? [merged.identity.identityType, merged.identity.subject] : merged;
    };
    expect(subjectOf(person())).toEqual(['svc-personid', 'personid:1']);
    expect(subjectOf(internal())).toEqual(['internal-legacy', 'userid:9']);
    expect(subjectOf(technician())).toEqual(['service-provider', 'technician:815:7']);
    expect(subjectOf(internal({ personId: 1 }))).toEqual(['svc-personid', 'personid:1']);
  });

  it('unites the authority of linked records', () => {
    const merged = mergeIdentities([person({ userId: 9 }), internal(), technician({ personId: 1 })]);
    expect(merged).toEqual({
      outcome: 'resolved',
      identity: {
        identityType: 'svc-personid',
        subject: 'personid:1',
        subjects: ['personid:1', 'userid:9', 'technician:815:7'],
        personId: 1,
        userId: 9,
        providerId: 815,
        name: 'Pat',
        personas: Persona.Customer | Persona.InternalPartner | Persona.ServiceProvider,
        userNameKeys: ['person-directory', 'internal-legacy', 'service-providers'],
        roles: [],
        facilities: [
          { value: 1, personas: Persona.Customer | Persona.ServiceProvider },
          { value: 2, personas: Persona.Customer },
          { value: 3, personas: Persona.ServiceProvider },
        ],
        groups: [
          { value: 'A', personas: Persona.InternalPartner },
          { value: 'B', personas: Persona.InternalPartner },
        ],
      },
    });
  });

  it.each<[string, IdentityRecord[]]>([
    ['two records without a link', [person(), internal()]],
    ['two records of one store', [technician({ personId: 1 }), technician({ personId: 1 })]],
    ['links that disagree', [person({ userId: 9 }), internal({ personId: 2 })]],
    ['links that disagree over a third', [person(), internal({ personId: 2 }), technician({ personId: 2 })]],
    ['two of three linked', [person({ userId: 9 }), internal(), technician()]],
  ])('fails closed for %s', (_, records) => {
    expect(mergeIdentities(records)).toEqual({ outcome: 'ambiguous' });
  });

  it('is disabled as soon as one record is', () => {
    expect(mergeIdentities([person({ userId: 9 }), internal({ disabled: true })])).toEqual({
      outcome: 'disabled',
    });
  });

  it('lets an explicit identifier pick among namesakes', () => {
    const namesakes = [person(), internal({ personId: 2 })];
    expect(mergeIdentities(namesakes)).toEqual({ outcome: 'ambiguous' });
    expect(mergeIdentities(namesakes, { personId: 1 })).toMatchObject({
      identity: { subject: 'personid:1' },
    });
    expect(mergeIdentities(namesakes, { personId: 2 })).toMatchObject({
      identity: { subject: 'personid:2', userId: 9 },
    });
  });

  it('is absent if an explicit identifier does not match', () => {
    expect(mergeIdentities([person()], { personId: 7 })).toEqual({ outcome: 'absent' });
    expect(mergeIdentities([person()], { userId: 9 })).toEqual({ outcome: 'absent' });
  });
});
