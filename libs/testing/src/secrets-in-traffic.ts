import { MIN_SECRET_LENGTH } from '#platform/secret-scan.ts';

/** Members of JSON bodies that must not appear in a log. */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([
  'password',
  'sharedSecret',
  'authenticationCode',
  'codeVerifier',
  'accessToken',
  'refreshToken',
  'token',
  'settingValue',
  'access_token',
  'refresh_token',
  'id_token',
]);

/** Fields of forms and queries that must not appear in a log. */
const SECRET_FIELDS: ReadonlySet<string> = new Set([
  'password',
  'bearerTokenOverride',
  'code',
  'state',
  'nonce',
  'code_verifier',
  'client_secret',
  'id_token',
  'access_token',
  'token',
]);

/** A request or a response. Headers have lower-case names, as in Node. */
export interface Half {
  url?: string | undefined;
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: string;
}

/**
 * Returns the secrets in a request or response, as a map from value to kind. Omits values too short to
 * distinguish from other text.
 */
export function secretsIn({ url, headers, body }: Half): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  const add = (kind: string, value: string): void => {
    if (value.length >= MIN_SECRET_LENGTH) found.set(value, kind);
  };
  const addFields = (fields: URLSearchParams): void => {
    for (const [name, value] of fields) if (SECRET_FIELDS.has(name)) add(name, value);
  };
  for (const address of [url, ...valuesOf(headers['location'])])
    if (address !== undefined) addFields(new URL(address, 'http://localhost').searchParams);
  for (const line of valuesOf(headers['authorization'])) {
    const credentials = line.replace(/^\S+ /, '');
    add('credentials', credentials);
    if (/^basic /i.test(line))
      add(
        'client_secret',
        Buffer.from(credentials, 'base64')
          .toString()
          .replace(/^[^:]*:/, ''),
      );
  }
  for (const line of valuesOf(headers['cookie']))
    for (const pair of line.split('; ')) add('cookie', pair.slice(pair.indexOf('=') + 1));
  for (const line of valuesOf(headers['set-cookie']))
    add('cookie', (line.split(';')[0] ?? '').replace(/^[^=]*=/, ''));
  const [type = ''] = valuesOf(headers['content-type']);
  if (type.startsWith('application/x-www-form-urlencoded')) addFields(new URLSearchParams(body));
  if (/\bjson\b/.test(type))
    for (const [name, value] of membersOf(body))
      // On other routes a member `code` is not a secret.
      if (SECRET_MEMBERS.has(name) || (name === 'code' && /\/auth\/token\/code\b/i.test(url ?? '')))
        add(name, value);
  // The whole body is the setting's value.
  if (/\/settings\/[^/]+\/value$/i.test(url ?? '') && !type.includes('problem')) add('settingValue', body);
  return found;
}

function valuesOf(header: string | readonly string[] | undefined): readonly string[] {
  return header === undefined ? [] : [header].flat();
}

/**
 * Returns the members of a JSON text at any depth. Numbers keep their spelling, because parsing would round
 * long ones.
 */
function membersOf(json: string): [name: string, value: string][] {
  const members = json.matchAll(/"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)/g);
  return [...members].map(([, name = '', value = '']) => [
    name,
    value.startsWith('"') ? decoded(value) : value,
  ]);
}

/** Returns the decoded string, or the raw text if it is not valid JSON, which tests also send. */
function decoded(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text.slice(1, -1);
  }
}
