// Faster ones for `gather`: batches in registers one ahead, with the indices two ahead, and rings filled in groups.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <algorithm>
#include <cuda_runtime.h>
#include <cuda_pipeline_primitives.h>
#define CK(x) do{cudaError_t e=(x); if(e!=cudaSuccess){printf("ERR %s line %d: %s\n",#x,__LINE__,cudaGetErrorString(e)); exit(1);} }while(0)
template<int W> __device__ __forceinline__ float work(float dx,float v){
#pragma unroll
 for(int k=0;k<W;k++) dx+=sqrtf(v+k); return dx;}
#define PRE int i=blockIdx.x*blockDim.x+threadIdx.x; int lane=threadIdx.x&31; long sub=i>>5; const int*__restrict__ ip=ind+sub*(long)items*32+lane;
template<int W> __global__ void base(const int*__restrict__ ind,const float*__restrict__ val,float*res,int items){PRE float dx=0;
#pragma unroll 1
 for(int j=0;j<items;j++) dx=work<W>(dx,val[ip[j*32]]); res[i]=dx;}
template<int W,int U> __global__ void regdb(const int*__restrict__ ind,const float*__restrict__ val,float*res,int items){PRE float dx=0; int nq=items/U; float a[U]; int x[U];
#pragma unroll
 for(int u=0;u<U;u++) a[u]=val[ip[u*32]];
#pragma unroll
 for(int u=0;u<U;u++) x[u]=ip[min(U+u,items-1)*32];
#pragma unroll 1
 for(int q=0;q<nq;q++){ float b[U];
#pragma unroll
  for(int u=0;u<U;u++) b[u]=val[x[u]];
#pragma unroll
  for(int u=0;u<U;u++) x[u]=ip[min((q+2)*U+u,items-1)*32];
  float s[U];
#pragma unroll
  for(int u=0;u<U;u++) dx=work<W>(dx,a[u]);
#pragma unroll
  for(int u=0;u<U;u++) a[u]=b[u]; }
 for(int j=nq*U;j<items;j++) dx=work<W>(dx,val[ip[j*32]]); res[i]=dx; }
template<int W,int U,int R> __global__ void ring(const int*__restrict__ ind,const float*__restrict__ val,float*res,int items){PRE extern __shared__ float v[]; int B=blockDim.x,t=threadIdx.x; int nq=items/U; float dx=0; int x[U];
 for(int s=0;s<R;s++){
#pragma unroll
  for(int u=0;u<U;u++) __pipeline_memcpy_async(&v[(s*U+u)*B+t],&val[ip[min(s*U+u,items-1)*32]],4); __pipeline_commit(); }
#pragma unroll
 for(int u=0;u<U;u++) x[u]=ip[min(R*U+u,items-1)*32]; int m=0;
#pragma unroll 1
 for(int q=0;q<nq;q++){ __pipeline_wait_prior(R-1); float a[U];
#pragma unroll
  for(int u=0;u<U;u++) a[u]=v[(m*U+u)*B+t];
#pragma unroll
  for(int u=0;u<U;u++) __pipeline_memcpy_async(&v[(m*U+u)*B+t],&val[x[u]],4);
  __pipeline_commit(); if(++m==R)m=0;
#pragma unroll
  for(int u=0;u<U;u++) x[u]=ip[min((q+R+1)*U+u,items-1)*32];
#pragma unroll
  for(int u=0;u<U;u++) dx=work<W>(dx,a[u]); }
 __pipeline_wait_prior(0); for(int j=nq*U;j<items;j++) dx=work<W>(dx,val[ip[j*32]]); res[i]=dx; }
int *ind; float*val,*res;
template<class F> float tm(F f){ cudaEvent_t a,b; cudaEventCreate(&a);cudaEventCreate(&b); f(); CK(cudaDeviceSynchronize()); std::vector<float> t; for(int r=0;r<7;r++){cudaEventRecord(a); f(); cudaEventRecord(b); CK(cudaEventSynchronize(b)); float ms; cudaEventElapsedTime(&ms,a,b); t.push_back(ms);} std::sort(t.begin(),t.end()); CK(cudaGetLastError()); return t[3];}
__global__ void mkind(int*p,long n,unsigned M){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x){ unsigned long z=(i+1)*0x9E3779B97F4A7C15ul+7; z=(z^(z>>30))*0xBF58476D1CE4E5B9ul; z=(z^(z>>27))*0x94D049BB133111EBul; z^=z>>31; p[i]=(unsigned)(z%M);} }
__global__ void mkval(float*p,long n){ for(long i=blockIdx.x*(long)blockDim.x+threadIdx.x;i<n;i+=(long)gridDim.x*blockDim.x) p[i]=(i*2654435761u>>8&0xffff)/65536.f+1.f; }
template<int W> void suite(int nb,int bs,int items,long M){ mkind<<<1024,256>>>(ind,(long)nb*bs*items,M); CK(cudaDeviceSynchronize()); std::vector<float> ref((size_t)nb*bs),o((size_t)nb*bs); float tb=tm([&]{base<W><<<nb,bs>>>(ind,val,res,items);}); CK(cudaMemcpy(ref.data(),res,ref.size()*4,cudaMemcpyDeviceToHost)); printf("gather W=%d %dx%d items %d: base %.3f ms\n",W,nb,bs,items,tb);
 auto rep=[&](const char*n,float t){ CK(cudaMemcpy(o.data(),res,o.size()*4,cudaMemcpyDeviceToHost)); int bad=0; for(size_t i=0;i<o.size();i++) bad+=o[i]!=ref[i]; printf("  %-12s %.3f ms x%.2f %s\n",n,t,tb/t,bad?"MISMATCH":""); CK(cudaMemset(res,0,o.size()*4)); };
#define D(U) rep("regdb " #U,tm([&]{regdb<W,U><<<nb,bs>>>(ind,val,res,items);}));
#define R(U,S) rep("ring " #U "," #S,tm([&]{ring<W,U,S><<<nb,bs,U*S*bs*4>>>(ind,val,res,items);}));
 D(4) D(8) D(16) D(32) R(1,4) R(2,4) R(4,2) R(4,4) R(8,2) R(8,3) R(16,1) R(16,2) }
int main(){ long M=1l<<28; CK(cudaMalloc(&val,M*4)); CK(cudaMalloc(&ind,(1l<<29)*4l)); CK(cudaMalloc(&res,1<<26)); mkval<<<1024,256>>>(val,M); CK(cudaDeviceSynchronize());
 suite<8>(132,128,1024,M); suite<8>(264,256,256,M); suite<8>(528,256,128,M); suite<8>(1056,256,64,M); suite<64>(132,128,1024,M); suite<1>(1056,256,512,M); }
