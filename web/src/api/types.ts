/** Short names for the schemas of the OpenAPI document. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Dataset = Schemas["Dataset"];
export type Photo = Schemas["Image"];
export type DatasetIssue = Schemas["DatasetIssue"];
export type Duplicate = Schemas["Duplicate"];
export type CurrentClusteringChange = Schemas["CurrentClusteringChange"];
export type Job = Schemas["Job"];
export type JobLogLine = Schemas["JobLogLine"];
export type JobCurvePoint = Schemas["JobCurvePoint"];
export type Clustering = Schemas["Clustering"];
export type Cluster = Schemas["Cluster"];
export type Example = Schemas["Example"];
export type RankedImage = Schemas["RankedImage"];
export type Changes = Schemas["Changes"];
export type GroupChange = Schemas["GroupChange"];
export type ChangedImages = Schemas["ChangedImages"];
export type Assignment = Schemas["Assignment"];
export type Statistics = Schemas["Statistics"];
export type Operation = Schemas["Operation"];
export type AppliedOperation = Schemas["AppliedOperation"];
export type OperationCreate =
  | Schemas["RenameCreate"]
  | Schemas["MergeCreate"]
  | Schemas["SplitCreate"]
  | Schemas["MoveCreate"]
  | Schemas["ExcludeCreate"]
  | Schemas["UndoCreate"]
  | Schemas["RedoCreate"];
/** Either some photos, or all of a group but some. */
export type SelectedImages = Pick<Schemas["ExcludeCreate"], "image_ids" | "selection">;
export type Refused = Schemas["Refused"];
export type Proposal = Schemas["Proposal"];
export type Neighbor = Schemas["Neighbor"];
export type FoundImage = Schemas["FoundImage"];
export type SearchResults = Schemas["SearchResults"];
export type NameSuggestion = Schemas["NameSuggestion"];
export type SimilarCluster = Schemas["SimilarCluster"];
export type Hierarchy = Schemas["Hierarchy"];
export type ClusterGroup = Schemas["ClusterGroup"];
export type SplitPreview = Schemas["SplitPreview"];
export type Model = Schemas["Model"];
export type ModelVersion = Schemas["ModelVersion"];
export type CurrentCalibration = Schemas["CurrentCalibration"];
export type Drift = Schemas["Drift"];
export type AliasChange = Schemas["AliasChange"];
export type Comparison = Schemas["Comparison"];
export type Prediction = Schemas["Prediction"];
export type Predictions = Schemas["Predictions"];
export type ReviewReport = Schemas["ReviewReport"];
export type ReviewQuestion = Schemas["ReviewQuestion"];
export type ReviewQueue = Schemas["ReviewQueue"];
export type AnswerCreate = Schemas["AnswerCreate"];
export type StoredAnswers = Schemas["StoredAnswers"];
export type Export = Schemas["Export"];
export type Worker = Schemas["Worker"];
export type Key = Schemas["Key"];
export type Readiness = Schemas["Readiness"];
export type Problem = Schemas["Problem"];
