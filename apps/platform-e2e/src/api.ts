import { randomUUID } from 'node:crypto';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';

/** An access token of a development identity, by its password. */
export async function logIn(
  authUrl: string,
  user: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const answer = await fetch(`${authUrl}/auth/token/user`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ user, password: DEVELOPMENT_PASSWORD }),
  });
  const { accessToken } = (await answer.json()) as { accessToken: string | null };
  if (accessToken === null) throw new Error(`${user} cannot log in: ${String(answer.status)}`);
  return accessToken;
}

/** An application of the development identities. */
const BACKEND = {
  applicationKey: 'demo-backend',
  sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
};

/** An access token of a development identity, by the word of an application. */
export async function signIn(
  authUrl: string,
  userName: string,
  persona: number,
  application: object = BACKEND,
): Promise<string> {
  const response = await fetch(`${authUrl}/auth/token/trust-simple`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...application, persona, userName }),
  });
  const { accessToken } = (await response.json()) as { accessToken: string | null };
  if (accessToken === null) throw new Error(`${userName} cannot sign in: ${String(response.status)}`);
  return accessToken;
}

/** The status of the response to a request without a body. */
export async function statusOf(method: string, url: string, token: string): Promise<number> {
  const response = await fetch(url, { method, headers: { authorization: `Bearer ${token}` } });
  await response.arrayBuffer();
  return response.status;
}

export interface Instance {
  taskInstanceId: string;
  scheduleId: string;
  dueAtUtc: string;
  status: string;
}

/** The task service at one address, for one caller. */
export class TaskApi {
  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async createSchedule(idempotencyKey: string = randomUUID(), facilityId = 501): Promise<string> {
    const answer = await this.send('POST', '/Schedules', {
      body: { facilityId, name: 'Journey', schedule: '0 6 * * *', timeZone: 'UTC' },
      headers: { 'idempotency-key': idempotencyKey },
    });
    if (answer.status !== 201) throw new Error(`POST /Schedules answered ${String(answer.status)}`);
    return ((await answer.json()) as { scheduleId: string }).scheduleId;
  }

  async instances(scheduleId: string): Promise<Instance[]> {
    const answer = await this.send('GET', `/Instances?scheduleId=${scheduleId}&pageSize=1000`);
    if (answer.status !== 200) throw new Error(`GET /Instances answered ${String(answer.status)}`);
    return ((await answer.json()) as { instances: Instance[] }).instances;
  }

  complete(taskInstanceId: string): Promise<Response> {
    return this.send('POST', `/Instances/${taskInstanceId}/commands/complete`);
  }

  private send(
    method: string,
    path: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    return fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...this.headers,
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }
}
