/** What a composite identifier names. */
export type SecurityEditorKey = 'GroupName' | 'AccessPointName';

const SEPARATOR = '~~';
const EDITOR = 'SecurityEditor';

/** The name in `SecurityEditor~~<key>~~<name>`, in Unicode normal form C; it may itself contain tildes. Null for every other identifier.
 *  Source: authentication spec, Authorization queries. */
export function nameInIdentifier(identifier: string, key: SecurityEditorKey): string | null {
  const prefix = `${EDITOR}${SEPARATOR}${key}${SEPARATOR}`;
  if (!identifier.startsWith(prefix)) return null;
  // As in user names: one character may come composed or not, and the router itself decomposes "İ" (see routableUrl).
  const name = identifier.slice(prefix.length).normalize('NFC');
  return /^[^\p{Cc}\p{Cs}]{1,256}$/u.test(name) ? name : null;
}
