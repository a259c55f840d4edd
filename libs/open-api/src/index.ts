export { OpenApi, previewDocument, GETTING_A_TOKEN, conventions } from './open-api';
export type { OpenApiDocument } from './schemas';
export {
  ApiBody,
  ApiConsumes,
  ApiCreatedResponse,
  ApiExtraModels,
  ApiHeader,
  ApiHeaders,
  ApiNoContentResponse,
  ApiOkResponse,
  ApiOperation,
  ApiParam,
  ApiQuery,
  ApiResponse,
  ApiSecurity,
  ApiTags,
  NeverFails,
  OmitStandardResponses,
  PagedQuery,
  PingRoute,
} from './decorators';
export {
  ProblemResponse,
  RESPONSE_HEADERS,
  jsonContent,
  problemBody,
  problemContent,
} from './problem-responses';
