import { MIN_SECRET_LENGTH } from '#platform/secret-scan.ts';

/** Members of JSON bodies that must not be written to a log. */
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

/** Fields of forms and queries that must not. */
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

/** One half of an HTTP exchange: headers by lower-case name, as Node gives them. */
export interface Half {
  url?: string | undefined;
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  body: string;
}

/**
 * The secrets in a request or a response: kinds by value. What is too short to be told from other text is
 * left out.
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
      // Elsewhere a code is a word.
      if (SECRET_MEMBERS.has(name) || (name === 'code' && /\/auth\/token\/code\b/i.test(url ?? '')))
        add(name, value);
  // A bare setting is nothing but its value.
  if (/\/settings\/[^/]+\/value$/i.test(url ?? '') && !type.includes('problem')) add('settingValue', body);
  return found;
}

function valuesOf(header: string | readonly string[] | undefined): readonly string[] {
  return header === undefined ? [] : [header].flat();
}

/** The members of a JSON text, at any depth. Numbers as they are written: parsing would round a long one. */
function membersOf(json: string): [name: string, value: string][] {
  const members = json.matchAll(/"(\w+)"\s*:\s*("(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*)/g);
  return [...members].map(([, name = '', value = '']) => [
    name,
    value.startsWith('"') ? decoded(value) : value,
  ]);
}

/** Tests also send what is no JSON. */
function decoded(text: string): string {
  try {
    return JSON.parse(text) as string;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return text.slice(1, -1);
  }
}
