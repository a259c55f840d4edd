/** Where the platform's processes response, and what the tour needs to know of the development identities. */
export interface TourSettings {
  auth: string;
  settings: string;
  task: string;
  customers: string;
  scheduling: string;
  receiver: string;
  identityProvider: string;
  password: string;
  backendSecret: string;
  /** That of `demo-reports`. */
  reportsSecret: string;
}

const DEFAULTS = {
  auth: ['AUTH_URL', 'http://127.0.0.1:3001'],
  settings: ['SETTINGS_URL', 'http://127.0.0.1:3002'],
  task: ['TASK_URL', 'http://127.0.0.1:3003'],
  customers: ['CUSTOMERS_URL', 'http://127.0.0.1:3011'],
  scheduling: ['SCHEDULING_URL', 'http://127.0.0.1:3012'],
  receiver: ['RECEIVER_URL', 'http://127.0.0.1:3013'],
  identityProvider: ['IDENTITY_PROVIDER_URL', 'http://127.0.0.1:3014'],
  password: ['TOUR_PASSWORD', 'Demo-Passw0rd!'],
  backendSecret: ['TOUR_BACKEND_SECRET', 'demo-backend-secret-for-local-use-only-000001'],
  reportsSecret: ['TOUR_REPORTS_SECRET', 'demo-reports-secret-for-local-use-only-000002'],
} as const satisfies Record<keyof TourSettings, readonly [variable: string, fallback: string]>;

/** The variable if set, else what the running platform says of itself, else the default of the port table. */
export function readTourSettings(
  environment: Readonly<Record<string, string | undefined>>,
  running: Readonly<Record<string, string>> = {},
): TourSettings {
  const entries = Object.entries(DEFAULTS).map(([name, [variable, fallback]]) => [
    name,
    (environment[variable] ?? running[variable] ?? fallback).replace(/\/$/, ''),
  ]);
  return Object.fromEntries(entries) as TourSettings;
}
