import type { Test } from 'supertest';

/** Expected statuses by identity. */
type Statuses = Readonly<Record<string, number>>;

/** One operation: how to send it, and the expected status for each identity. */
interface AuthorisedOperation {
  /** The path with its parameters filled in. */
  path: string;
  send?: (request: Test) => Test;
  answers: Statuses;
}

/** The authorisation matrix of a service. */
export interface AuthorisationMatrix {
  /** Sends a request without a token. */
  request: (method: string, path: string) => Test;
  /** Access tokens by identity, null for anonymous. Called once, before the first operation. */
  tokens: () => Promise<ReadonlyMap<string, string | null>>;
  /** Operations by method and path, as in the API document. Operations that end a token come last. */
  operations: Readonly<Record<string, AuthorisedOperation>>;
}

/**
 * Tests that the matrix contains every operation of the API document, and that each identity gets the status
 * in the matrix.
 */
export function describeAuthorisation({ request, tokens, operations }: AuthorisationMatrix): void {
  describe('the authorisation matrix', () => {
    let identities: ReadonlyMap<string, string | null>;
    beforeAll(async () => {
      identities = await tokens();
    });

    it('covers every operation', async () => {
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
      for (const [identity, token] of identities) {
        const sent = send(request(method, path));
        const { status } = await (token === null ? sent : sent.set('Authorization', `Bearer ${token}`));
        seen[identity] = status;
      }
      expect(seen).toEqual(answers);
    });
  });
}
