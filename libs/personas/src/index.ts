export {
  ALL_PERSONAS,
  Persona,
  combinePersonas,
  hasAnyPersona,
  hasPersona,
  isPersonas,
  personaNames,
} from './personas';
export type { PersonaName, Personas } from './personas';
