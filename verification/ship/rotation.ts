import { signIn, statusOf } from '#platform/callers.ts';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICE_NAMES, SERVICES } from '#platform/programs.ts';
import { eventually } from '#platform/waiting.ts';
import { READABLE_PATHS } from '#verification/audit/responses-and-logs.ts';
import type { Application } from '#verification/traffic/context.ts';
import type { Release } from './namespace.ts';
import type { Overlay } from './overlay.ts';
import { randomKey } from './servers.ts';

const [OLD_ID, NEW_ID] = ['access-1', 'access-2'];
/** More than two minutes, the minimum time between the publication of a key and its first use. */
const PUBLISHED_TIMEOUT_MS = 150_000;

/**
 * Replaces both kinds of signing keys of access tokens, as docs/operations.md describes.
 * @throws {FriendlyError} if a pod accepts or refuses a token unexpectedly
 */
export async function rotateKeys(
  overlay: Overlay,
  release: Release,
  application: Application,
): Promise<void> {
  const { namespace, secrets } = overlay;
  const kid = await administer(overlay, release, ['keys', 'generate']);
  const oldKey = secrets.get('auth-service-secrets/ACCESS_TOKEN_HMAC_KEY') ?? '';
  const newKey = randomKey();
  const set = (name: string, value: string): void => {
    for (const { name: service } of SERVICES) secrets.set(`${service}-secrets/${name}`, value);
  };
  const signInAgain = (): Promise<string> =>
    signIn(overlay.url('auth'), application.userName, 1, application);
  const before = await signInAgain();
  set('ACCESS_TOKEN_PREVIOUS_HMAC_KEYS', `${OLD_ID}:${oldKey},${NEW_ID}:${newKey}`);
  await overlay.rollOut(release);
  await expectEverywhere(overlay, before, 200);
  set('ACCESS_TOKEN_HMAC_KEY', newKey);
  const changed = { ...release, services: release.services.map(withNewId) };
  await namespace.rollOut('auth-service', changed);
  const after = await signInAgain();
  const header = Buffer.from(after.split('.')[0] ?? '', 'base64url').toString();
  if (!header.includes(`"${NEW_ID}"`)) throw new FriendlyError(`The key ${NEW_ID} does not sign: ${header}`);
  for (const token of [before, after]) await expectEverywhere(overlay, token, 200);
  await Promise.all(['settings-service', 'task-service'].map((name) => namespace.rollOut(name, changed)));
  for (const token of [before, after]) await expectEverywhere(overlay, token, 200);
  // The step that an operator takes a day later.
  set('ACCESS_TOKEN_PREVIOUS_HMAC_KEYS', `${NEW_ID}:${newKey}`);
  await overlay.rollOut(changed);
  await expectEverywhere(overlay, before, 401);
  await expectEverywhere(overlay, after, 200);
  await eventually(() => administer(overlay, changed, ['keys', 'activate', kid]), {
    timeoutMs: PUBLISHED_TIMEOUT_MS,
    intervalMs: 5_000,
  });
  const jwks = await (await fetch(`${overlay.url('auth')}/auth/.well-known/jwks.json`)).text();
  if (!jwks.includes(`"${kid}"`)) throw new FriendlyError(`The key ${kid} is not published: ${jwks}`);
}

/** Runs a command that changes a key. Returns the id of the key. */
function administer(overlay: Overlay, release: Release, args: readonly string[]): Promise<string> {
  return overlay.namespace.administer(release, 'auth-service-administration', async (admin) => {
    const { kid } = JSON.parse(await admin('--json', ...args)) as { kid: string };
    return kid;
  });
}

/** Sets the new key id in a ConfigMap, as an operator's overlay would. */
function withNewId(object: Release['services'][number]): Release['services'][number] {
  const { data } = object as { data?: Readonly<Record<string, string>> };
  if (data?.['ACCESS_TOKEN_HMAC_KEY_ID'] === undefined) return object;
  return { ...object, data: { ...data, ACCESS_TOKEN_HMAC_KEY_ID: NEW_ID } };
}

async function expectEverywhere({ namespace }: Overlay, token: string, expected: number): Promise<void> {
  for (const service of SERVICE_NAMES) {
    for (const { name, ip, port } of namespace.pods(`${service}-service`)) {
      const status = await statusOf('GET', `http://${ip}:${port}${READABLE_PATHS[service]}`, token);
      if (status !== expected) throw new FriendlyError(`${name} responded ${status}, not ${expected}.`);
    }
  }
}
