import type { Test } from 'supertest';

/** What an identity is answered: a status for each identity, by name. */
type Answers = Readonly<Record<string, number>>;

/** One operation: how it is asked for, and what everybody is answered. */
interface AuthorisedOperation {
  /** The path with its parameters filled in. */
  path: string;
  send?: (request: Test) => Test;
  answers: Answers;
}

/** Who may do what in a service. */
export interface AuthorisationMatrix {
  /** Sends a request without a token. */
  request: (method: string, path: string) => Test;
  /** Access tokens by identity; null: anonymous. Asked for once, before the first operation. */
  tokens: () => Promise<ReadonlyMap<string, string | null>>;
  /** By method and path as the API document has them. What ends a token comes last. */
  operations: Readonly<Record<string, AuthorisedOperation>>;
}

/**
 * Tests that every operation of the API document is in the matrix, and that each identity is answered as it
 * says.
 */
export function describeAuthorisation({ request, tokens, operations }: AuthorisationMatrix): void {
  describe('who may do what', () => {
    let everybody: ReadonlyMap<string, string | null>;
    beforeAll(async () => {
      everybody = await tokens();
    });

    it('is said of every operation', async () => {
      const { body } = await request('GET', '/openapi.json');
      const documented = Object.entries((body as { paths: Record<string, object> }).paths).flatMap(
        ([path, methods]) => Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
      );
      expect(Object.keys(operations).sort()).toEqual(documented.sort());
    });

    it.each(Object.keys(operations))('%s', async (name) => {
      const { path, send = (sent: Test) => sent, answers } = operations[name]!;
      const method = name.slice(0, name.indexOf(' '));
      const seen: Record<string, number> = {};
      for (const [identity, token] of everybody) {
        const sent = send(request(method, path));
        const { status } = await (token === null ? sent : sent.set('Authorization', `Bearer ${token}`));
        seen[identity] = status;
      }
      expect(seen).toEqual(answers);
    });
  });
}
