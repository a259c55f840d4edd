import { ALL_PERSONAS, Persona } from '@platform/personas';
import type { Personas } from '@platform/personas';

/** Password of every development user that has one. It is public: the README documents it. */
export const DEVELOPMENT_PASSWORD = 'Demo-Passw0rd!';

export interface DevelopmentPerson {
  personId: number;
  userName: string;
  displayName: string;
  personas: Personas;
  roles?: readonly string[];
  facilities?: readonly number[];
  disabled?: boolean;
  /** Stored as an ASP.NET Identity V3 hash, to demonstrate the upgrade at the first login. */
  legacyPassword?: boolean;
}

export const DEVELOPMENT_PERSONS: readonly DevelopmentPerson[] = [
  {
    personId: 1001,
    userName: 'carl.customer',
    displayName: 'Carl Customer',
    personas: Persona.Customer,
    facilities: [501, 502],
  },
  {
    personId: 1002,
    userName: 'olga.owner',
    displayName: 'Olga Owner',
    personas: Persona.Owner,
    facilities: [501],
  },
  {
    personId: 1003,
    userName: 'rita.resident',
    displayName: 'Rita Resident',
    personas: Persona.Resident,
    facilities: [501],
  },
  // Her persona ServiceProvider and her facility come from her technician account.
  { personId: 1004, userName: 'tess.tech', displayName: 'Tess Tech', personas: Persona.None },
  {
    personId: 1005,
    userName: 'gina.global',
    displayName: 'Gina Global',
    personas: Persona.Customer,
    roles: ['CustomerGlobalAdministrator'],
  },
  {
    personId: 1006,
    userName: 'lena.legacy',
    displayName: 'Lena Legacy',
    personas: Persona.Customer,
    legacyPassword: true,
  },
  {
    personId: 1007,
    userName: 'dora.disabled',
    displayName: 'Dora Disabled',
    personas: Persona.Customer,
    disabled: true,
  },
];

export const DEVELOPMENT_INTERNAL_USERS = [
  { userId: 9000, userName: 'svc.platform', displayName: 'Platform services', hasPassword: false },
  { userId: 9001, userName: 'ivy.internal', displayName: 'Ivy Internal', hasPassword: true },
] as const;

/** Groups with their members. Operations, Dispatch and NightShift form a cycle on purpose. */
export const DEVELOPMENT_GROUPS = [
  { groupName: 'Operations', groups: ['Dispatch'], userIds: [] },
  { groupName: 'Dispatch', groups: ['NightShift'], userIds: [9001] },
  { groupName: 'NightShift', groups: ['Operations'], userIds: [] },
] as const;

export const DEVELOPMENT_ACCESS_POINTS = [{ accessPointName: 'Scheduling', groups: ['Operations'] }] as const;

export const DEVELOPMENT_PROVIDERS = [{ providerId: 815, providerName: 'Provider 815' }] as const;

export const DEVELOPMENT_TECHNICIANS = [
  // Her provider works in one building. The facility belongs to the account, not to the person.
  { providerId: 815, userName: 'tess.tech', displayName: 'Tess Tech', personId: 1004, facilities: [501] },
] as const;

/**
 * Mapped subjects of the development identity provider. Its fourth subject, nora, is not mapped on purpose.
 */
export const DEVELOPMENT_EXTERNAL_IDENTITIES = [
  { subject: 'external-ivy', personId: null, userId: 9001 },
  { subject: 'external-carl', personId: 1001, userId: null },
  { subject: 'external-dora', personId: 1007, userId: null },
] as const;

export interface DevelopmentApplication {
  applicationKey: string;
  sharedSecret: string;
  allowedPersonas: Personas;
  allowRefresh: boolean;
  /** Addresses to which a single sign-on may return. */
  returnUrls: readonly string[];
  /** The only user for whom it may get tokens. */
  subject?: string;
}

/** @param serviceSecret the shared secret of the platform's services, with which they read revocations */
export function developmentApplications(serviceSecret: string): readonly DevelopmentApplication[] {
  return [
    {
      applicationKey: 'demo-backend',
      sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
      allowedPersonas: ALL_PERSONAS,
      allowRefresh: true,
      returnUrls: ['http://127.0.0.1:4200/signed-in'],
    },
    {
      applicationKey: 'demo-reports',
      sharedSecret: 'demo-reports-secret-for-local-use-only-000002',
      allowedPersonas: Persona.Customer,
      allowRefresh: false,
      returnUrls: [],
    },
    {
      applicationKey: 'platform-services',
      sharedSecret: serviceSecret,
      allowedPersonas: Persona.InternalPartner,
      allowRefresh: false,
      returnUrls: [],
      subject: 'svc.platform',
    },
  ];
}
