import { z } from 'zod';

const headerName = z
  .string()
  .regex(/^[A-Za-z0-9-]{1,100}$/, 'must be the name of a header')
  .transform((name) => name.toLowerCase());

/** Environment variables of Windows authentication. */
export const windowsSettings = {
  /** off; negotiate: Kerberos tickets over SPNEGO; trusted-header: a reverse proxy has authenticated the user. */
  WINDOWS_AUTHENTICATION: z.enum(['off', 'negotiate', 'trusted-header']).default('off'),
  /** The one realm whose users are known. */
  WINDOWS_REALM: z
    .string()
    .regex(/^[A-Za-z0-9.-]{1,255}$/, 'must be a Kerberos realm')
    .optional(),
  /** negotiate: whose tickets are accepted, `HTTP@host`. */
  WINDOWS_SERVICE_PRINCIPAL: z
    .string()
    .regex(/^HTTP@[A-Za-z0-9.-]{1,255}$/, 'must be HTTP@host')
    .optional(),
  /** negotiate: the keytab. Read by the Kerberos library itself; named here so that its absence is told at boot. */
  KRB5_KTNAME: z.string().min(1).optional(),
  /** negotiate: tickets judged at once. */
  WINDOWS_TICKET_CONCURRENCY: z.coerce.number().int().min(1).max(64).default(2),
  /** trusted-header: where the proxy writes `user@REALM`. */
  WINDOWS_PROXY_USER_HEADER: headerName.default('x-remote-user'),
  /** trusted-header: where it writes its secret. */
  WINDOWS_PROXY_SECRET_HEADER: headerName.default('x-proxy-secret'),
  WINDOWS_PROXY_SECRET: z
    .string()
    .regex(/^[\x21-\x7e]{32,1024}$/, 'must be 32 to 1,024 visible ASCII characters')
    .optional(),
  /** The application of Windows sign-ins that send no X-Application-Key; without one they get no refresh token. */
  WINDOWS_FLOW_DEFAULT_APPLICATION: z.string().min(1).max(200).optional(),
};

export type WindowsConfig = Readonly<z.output<z.ZodObject<typeof windowsSettings>>>;

const REQUIRED = {
  off: [],
  negotiate: ['WINDOWS_REALM', 'WINDOWS_SERVICE_PRINCIPAL', 'KRB5_KTNAME'],
  'trusted-header': ['WINDOWS_REALM', 'WINDOWS_PROXY_SECRET'],
} as const satisfies Record<WindowsConfig['WINDOWS_AUTHENTICATION'], readonly (keyof WindowsConfig)[]>;

/** The variables that the chosen mode needs and that are missing. */
export function missingWindowsSettings(config: WindowsConfig): readonly (keyof WindowsConfig)[] {
  return REQUIRED[config.WINDOWS_AUTHENTICATION].filter((name) => config[name] === undefined);
}
