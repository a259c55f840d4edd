import { Persona } from '@platform/personas';
import type { Application } from '../applications/application';
import type { Identity } from '../identity/identity';
import { authoriseRequest, authoriseSubject, grantPersonas } from './grant-personas';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';

const { InternalPartner, Customer, ServiceProvider, Owner } = Persona;

function holder(personas: number, identityType: Identity['identityType'] = 'svc-personid'): Identity {
  return { personas, identityType } as Identity;
}

function application(allowedPersonas: number, allowedSubjects: string[] | null = null): Application {
  const limits = { allowedPersonas, allowedSubjects, allowAdministrators: false };
  return { applicationKey: 'app', ...limits, allowRefresh: true, confidential: false, allowedFlows: [] };
}

const login = (grantAsInternalPartner: boolean) => ({ kind: 'login' as const, grantAsInternalPartner });

describe('grantPersonas', () => {
  it('grants exactly the personas that a trusted application requests, if the user holds all of them', () => {
    const request = { kind: 'exactly' as const, personas: Customer | Owner };
    expect(grantPersonas(holder(Customer | Owner | ServiceProvider), request, null)).toBe(Customer | Owner);
    expect(() => grantPersonas(holder(Customer), request, null)).toThrow(
      expect.objectContaining({ reason: TokenRejectionReason.AuthenticationFailed, stage: 'resolution' }),
    );
  });

  it('grants no more on renewal than before, and no persona that the user has lost since', () => {
    const request = { kind: 'within' as const, personas: Customer | Owner };
    expect(grantPersonas(holder(Customer | InternalPartner), request, null)).toBe(Customer);
    expect(() => grantPersonas(holder(InternalPartner), request, null)).toThrow(
      expect.objectContaining({ reason: TokenRejectionReason.AuthenticationFailed }),
    );
    expect(grantPersonas(holder(Customer), { kind: 'within', personas: 0 }, null)).toBe(0);
  });

  it('grants no more on renewal than the application is now permitted to have', () => {
    const request = { kind: 'within' as const, personas: Customer | Owner };
    expect(grantPersonas(holder(Customer | Owner), request, application(Owner))).toBe(Owner);
    expect(() => grantPersonas(holder(Customer), request, application(Owner))).toThrow(
      expect.objectContaining({ reason: TokenRejectionReason.InvalidGrant }),
    );
  });

  it('grants internal users InternalPartner at login without being asked', () => {
    expect(grantPersonas(holder(InternalPartner, 'internal-legacy'), login(false), null)).toBe(
      InternalPartner,
    );
  });

  it('grants a person with a linked internal account InternalPartner only when asked', () => {
    const linked = holder(Customer | InternalPartner);
    expect(grantPersonas(linked, login(false), null)).toBe(Customer);
    expect(grantPersonas(linked, login(true), null)).toBe(Customer | InternalPartner);
  });

  it('ignores grantAsInternalPartner for a user who is not eligible', () => {
    expect(grantPersonas(holder(Customer), login(true), null)).toBe(Customer);
  });

  it('limits a login to the personas that the application is permitted to have', () => {
    expect(grantPersonas(holder(Customer | Owner), login(false), application(Customer))).toBe(Customer);
    expect(() => grantPersonas(holder(Owner), login(false), application(Customer))).toThrow(
      expect.objectContaining({ reason: TokenRejectionReason.InvalidGrant }),
    );
  });
});

describe('a user without any persona', () => {
  it('signs in, even to an application with limited personas', () => {
    expect(grantPersonas(holder(0), login(false), application(Customer))).toBe(0);
  });
});

describe('a refusal', () => {
  const refusalOf = (grant: () => unknown): TokenRejected => {
    try {
      grant();
    } catch (error) {
      if (error instanceof TokenRejected) return error;
    }
    throw new Error('was not refused');
  };
  const exactly = { kind: 'exactly' as const, personas: Owner };
  const within = { kind: 'within' as const, personas: Owner };

  it('tells the caller only that authentication failed, and the log that a persona is missing', () => {
    const refusals = [exactly, within].map((request) =>
      refusalOf(() => grantPersonas(holder(Customer), request, null)),
    );
    expect(refusals.map(({ message }) => message)).toEqual([
      'Authentication failed.',
      'Authentication failed.',
    ]);
    expect(refusals.map(({ privateDetail }) => privateDetail)).toEqual([
      'persona not held',
      'no persona left',
    ]);
  });

  it('names what is not permitted to the application, whether or not the user exists', () => {
    const persona = refusalOf(() => {
      authoriseRequest(application(Customer), { persona: Owner, userName: 'nobody' });
    });
    expect(persona.message).toBe('The requested persona is not permitted to this application.');
    const subject = refusalOf(() => {
      authoriseSubject(application(Customer, []), ['nobody']);
    });
    expect(subject.message).toBe('Tokens for this user are not permitted to this application.');
  });
});

describe('authoriseRequest', () => {
  const refused = expect.objectContaining({ reason: TokenRejectionReason.InvalidGrant }) as unknown as Error;

  it('refuses a request with any persona that is not permitted to the application', () => {
    const asked = { persona: Customer, userName: 'Ann' };
    expect(() => {
      authoriseRequest(application(Customer), asked);
    }).not.toThrow();
    expect(() => {
      authoriseRequest(application(Customer), { ...asked, persona: Customer | Owner });
    }).toThrow(refused);
  });

  it('refuses a user who is not among the allowed subjects of the application', () => {
    expect(() => {
      authoriseRequest(application(Customer, ['ann']), { persona: Customer, userName: 'Ann' });
    }).not.toThrow();
    expect(() => {
      authoriseRequest(application(Customer, ['ann']), { persona: Customer, userName: 'bob' });
    }).toThrow(refused);
    expect(() => {
      authoriseSubject(application(Customer, []), ['ann']);
    }).toThrow(refused);
    expect(() => {
      authoriseSubject(application(Customer, ['ann']), ['ann', 'ann.internal']);
    }).not.toThrow();
    expect(() => {
      authoriseSubject(null, []);
    }).not.toThrow();
  });
});
